import pytest

from zerolayer_dev.testing.clock import FakeClock
from zerolayer_operator.health import Heartbeat


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def heartbeat(clock: FakeClock) -> Heartbeat:
    return Heartbeat(resync_interval_s=60, lease_interval_s=15, clock=clock)


def test_starting_is_alive_but_not_ready(heartbeat: Heartbeat, clock: FakeClock) -> None:
    assert heartbeat.alive().ok
    assert not heartbeat.ready().ok
    clock.now = 46
    assert not heartbeat.alive().ok, "a process that never looks at the Lease is stuck"


def test_standby_is_healthy_without_any_resync(heartbeat: Heartbeat, clock: FakeClock) -> None:
    heartbeat.become("standby")
    for clock.now in range(0, 3600, 15):
        heartbeat.beat("lease")
        assert heartbeat.alive().ok
        assert heartbeat.ready().ok


@pytest.mark.parametrize(
    ("silent", "ok", "reason"),
    [
        pytest.param("resync", False, "no resync for 181 s, at most 180 s are expected", id="resync"),
        pytest.param("lease", False, "no lease for 181 s, at most 45 s are expected", id="lease"),
        pytest.param("reconcile", True, "every loop turns", id="a cluster without pools"),
    ],
)
def test_leader_lives_by_its_loops(
    heartbeat: Heartbeat, clock: FakeClock, silent: str, ok: bool, reason: str
) -> None:
    heartbeat.become("leading")
    clock.now = 181
    for kind in ("lease", "resync", "reconcile"):
        if kind != silent:
            heartbeat.beat(kind)
    verdict = heartbeat.alive()
    assert (verdict.ok, verdict.role, verdict.reason) == (ok, "leading", reason)
    assert heartbeat.ready().ok is ok


def test_new_leader_has_a_full_interval_for_its_first_resync(heartbeat: Heartbeat, clock: FakeClock) -> None:
    heartbeat.become("standby")
    clock.now = 10_000
    heartbeat.beat("lease")
    heartbeat.become("leading")
    assert heartbeat.alive().ok
    clock.now += 180
    heartbeat.beat("lease")
    assert heartbeat.alive().ok
    clock.now += 1
    assert not heartbeat.alive().ok


def test_becoming_what_one_is_changes_nothing(heartbeat: Heartbeat, clock: FakeClock) -> None:
    heartbeat.become("leading")
    clock.now = 181
    heartbeat.beat("lease")
    heartbeat.become("leading")
    assert not heartbeat.alive().ok


def test_slow_api_server_is_not_held_against_short_intervals(clock: FakeClock) -> None:
    heartbeat = Heartbeat(resync_interval_s=1, lease_interval_s=15, clock=clock)
    heartbeat.become("leading")
    clock.now = 16
    heartbeat.beat("lease")
    assert heartbeat.alive().ok, "one request may take 15 s"
    clock.now = 61
    heartbeat.beat("lease")
    assert not heartbeat.alive().ok
