import asyncio
from collections.abc import Callable, Coroutine, Generator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from zerolayer_dev.testing.clock import FakeClock
from zerolayer_operator.lease import (
    Elector,
    LeaseLostError,
    LeaseRecord,
    LeaseUnavailableError,
    Seen,
    Step,
    Timing,
    decide,
)

DAY = datetime(2026, 1, 1, tzinfo=UTC)
TIMING = Timing(duration_s=15)


def record(holder: str, *, duration: int = 15, version: str = "1") -> LeaseRecord:
    return LeaseRecord(holder, duration, 0, acquired=DAY, renewed=DAY, version=version)


class FakeApi:
    """One Lease behind optimistic concurrency; every call fails while there is an `outage`."""

    def __init__(self) -> None:
        self.stored: LeaseRecord | None = None
        self.version = 0
        self.outage = False
        self.reads = 0
        self.writes: list[LeaseRecord] = []

    async def read(self) -> LeaseRecord | None:
        self._check()
        self.reads += 1
        return self.stored

    async def write(self, new: LeaseRecord) -> LeaseRecord | None:
        self._check()
        return self.put(new)

    def put(self, new: LeaseRecord) -> LeaseRecord | None:
        current = self.stored.version if self.stored else ""
        if new.version != current:
            return None
        self.version += 1
        self.stored = replace(new, version=str(self.version))
        self.writes.append(self.stored)
        return self.stored

    def _check(self) -> None:
        if self.outage:
            raise LeaseUnavailableError("connection refused")


def elector(api: FakeApi, clock: FakeClock, me: str, rounds: list[float] | None = None) -> Elector:
    def on_round(reached: bool) -> None:
        if reached and rounds is not None:
            rounds.append(clock())

    return Elector(api, me, TIMING, clock=clock, sleep=clock.sleep, today=lambda: DAY, on_round=on_round)


async def until(condition: Callable[[], bool]) -> None:
    """Lets other tasks run until `condition` holds; time is the fake clock's."""
    while not condition():  # noqa: ASYNC110 - there is nothing that could set an event
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("seen", "now", "step"),
    [
        pytest.param(None, 0, Step.CREATE, id="no Lease"),
        pytest.param(Seen(record("me"), 0), 0, Step.RENEW, id="mine"),
        pytest.param(Seen(record("me"), 0), 99, Step.RENEW, id="mine, run out, nobody took it"),
        pytest.param(Seen(record(""), 0), 0, Step.TAKE, id="given back"),
        pytest.param(Seen(record("other"), 0), 14.9, Step.WAIT, id="other's, fresh"),
        pytest.param(Seen(record("other"), 0), 15, Step.TAKE, id="other's, not renewed for its duration"),
        pytest.param(Seen(record("other", duration=60), 0), 15, Step.WAIT, id="other's duration counts"),
        pytest.param(Seen(record("other", duration=0), 0), 0, Step.TAKE, id="edited by hand, no duration"),
    ],
)
def test_decide(seen: Seen | None, now: float, step: Step) -> None:
    assert decide(seen, "me", now) is step


def test_leader_gives_up_well_before_a_standby_may_take_over() -> None:
    for duration in (3, 15, 300):
        timing = Timing(duration)
        assert timing.retry_s < timing.renew_s < timing.deadline_s < duration
        assert duration - timing.deadline_s >= 1


async def test_first_candidate_creates_the_lease_and_renews_without_reading() -> None:
    api, clock, rounds = FakeApi(), FakeClock(1000.0), []
    leader = elector(api, clock, "a", rounds)
    await leader.acquire()
    assert leader.leads()
    assert api.stored == record("a")
    holding = asyncio.create_task(leader.hold())
    await until(lambda: len(api.writes) >= 4)
    holding.cancel()
    assert api.reads == 1
    assert {write.acquired for write in api.writes} == {DAY}
    assert len(rounds) == len(api.writes)


async def test_standby_waits_for_the_lease_to_run_out() -> None:
    api, clock, rounds = FakeApi(), FakeClock(1000.0), []
    api.put(record("dead", version=""))
    standby = elector(api, clock, "b", rounds)
    assert standby.leader == ""
    start = clock()
    waiting = asyncio.create_task(standby.acquire())
    await until(lambda: bool(rounds))
    assert standby.leader == "dead"
    await waiting
    assert standby.leader == "b"
    assert 15 <= clock() - start <= 15 + TIMING.retry_s
    assert api.stored is not None
    assert (api.stored.holder, api.stored.transitions) == ("b", 1)
    assert len(rounds) > 5, "a standby tells that it is alive at every look"


async def test_released_lease_is_taken_at_the_next_look() -> None:
    api, clock = FakeApi(), FakeClock(1000.0)
    leader, standby = elector(api, clock, "a"), elector(api, clock, "b")
    await leader.acquire()
    waiting = asyncio.create_task(standby.acquire())
    await asyncio.sleep(0)
    start = clock()
    await leader.release()
    assert not leader.leads()
    await waiting
    assert clock() - start <= TIMING.retry_s
    assert standby.leads()


async def test_restart_under_the_same_name_takes_over_at_once() -> None:
    api, clock = FakeApi(), FakeClock(1000.0)
    await elector(api, clock, "a").acquire()
    start = clock()
    await elector(api, clock, "a").acquire()
    assert clock() == start


async def test_lease_is_lost_at_the_deadline_when_the_api_server_is_gone() -> None:
    api, clock = FakeApi(), FakeClock(1000.0)
    leader = elector(api, clock, "a")
    await leader.acquire()
    start, api.outage = clock(), True
    with pytest.raises(LeaseLostError, match="not renewed in time"):
        await leader.hold()
    assert clock() - start == pytest.approx(TIMING.deadline_s)
    await leader.release()
    assert api.stored == record("a"), "what is not held any more is not given back"


async def test_short_outage_is_survived() -> None:
    api, clock = FakeApi(), FakeClock(1000.0)
    leader = elector(api, clock, "a")
    await leader.acquire()
    api.outage = True
    holding = asyncio.create_task(leader.hold())
    start = clock()
    await until(lambda: clock() - start >= TIMING.deadline_s - TIMING.retry_s)
    api.outage = False
    seen = len(api.writes)
    await until(lambda: len(api.writes) >= seen + 3)
    assert leader.leads()
    holding.cancel()


async def test_lease_taken_by_somebody_else_is_lost_at_once() -> None:
    api, clock = FakeApi(), FakeClock(1000.0)
    leader = elector(api, clock, "a")
    await leader.acquire()
    assert api.stored is not None
    api.put(replace(api.stored, holder="intruder"))
    with pytest.raises(LeaseLostError, match="intruder holds it"):
        await leader.hold()


async def test_hanging_request_cannot_outlive_the_lease() -> None:
    class Hanging(FakeApi):
        async def write(self, new: LeaseRecord) -> LeaseRecord | None:
            if self.writes:
                await asyncio.Event().wait()
            return await super().write(new)

    candidate = Elector(Hanging(), "a", Timing(duration_s=1))
    await candidate.acquire()
    async with asyncio.timeout(5):
        with pytest.raises(LeaseLostError):
            await candidate.hold()


class _Pause:
    """Suspends a coroutine until the state machine sends it on."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class SlowApi(FakeApi):
    """A `FakeApi` whose every call waits before it reaches the server, and again before it answers."""

    async def read(self) -> LeaseRecord | None:
        await _Pause()
        answer = await super().read()
        await _Pause()
        return answer

    async def write(self, new: LeaseRecord) -> LeaseRecord | None:
        await _Pause()
        answer = await super().write(new)
        await _Pause()
        return answer


class Candidate:
    """An elector and the attempt that is under way."""

    def __init__(self, api: SlowApi, clock: FakeClock, me: str) -> None:
        self.me = me
        self.elector = elector(api, clock, me)
        self.attempt: Coroutine[Any, Any, Any] | None = None

    def step(self) -> None:
        if self.attempt is None:
            self.attempt = self.elector.attempt()
        try:
            self.attempt.send(None)
        except (StopIteration, LeaseUnavailableError):
            self.attempt = None

    def cut_off(self) -> None:
        if self.attempt is not None:
            self.attempt.close()
            self.attempt = None


MISHAPS = ("cut off", "kill", "restart", "release", "delete")


class TwoCandidates(RuleBasedStateMachine):
    """Two candidates, requests that interleave, lost requests and answers, and `kill -9`."""

    def __init__(self) -> None:
        super().__init__()
        self.api, self.clock, self.born = SlowApi(), FakeClock(1000.0), 2
        self.candidates = [Candidate(self.api, self.clock, "0"), Candidate(self.api, self.clock, "1")]

    @rule(which=st.integers(0, 1))
    def finish_attempt(self, which: int) -> None:
        candidate = self.candidates[which]
        candidate.step()
        while candidate.attempt is not None:
            candidate.step()

    @rule(which=st.integers(0, 1))
    def one_step(self, which: int) -> None:
        self.candidates[which].step()

    @rule(seconds=st.sampled_from([1, 5, 9.9, 15]))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(which=st.integers(0, 1), what=st.sampled_from([*["nothing"] * 10, *MISHAPS]))
    def mishap(self, which: int, what: str) -> None:
        candidate = self.candidates[which]
        if what == "release":
            if candidate.attempt is None:
                candidate.attempt = candidate.elector.release()
                candidate.step()
            return
        if what != "nothing":
            candidate.cut_off()
        if what == "kill":
            self.candidates[which] = Candidate(self.api, self.clock, str(self.born))
            self.born += 1
        elif what == "restart":
            self.candidates[which] = Candidate(self.api, self.clock, candidate.me)
        elif what == "delete" and not any(one.elector.leads() or one.attempt for one in self.candidates):
            self.api.stored = None

    @invariant()
    def never_two_leaders(self) -> None:
        assert sum(candidate.elector.leads() for candidate in self.candidates) <= 1

    @invariant()
    def a_leader_holds_the_lease(self) -> None:
        for candidate in self.candidates:
            if candidate.elector.leads():
                assert self.api.stored is not None
                assert self.api.stored.holder == candidate.me

    def teardown(self) -> None:
        """However it went, somebody leads once the API server is back and nobody gets in the way."""
        for candidate in self.candidates:
            candidate.cut_off()
        for _ in range(20):
            self.clock.now += TIMING.retry_s
            for candidate in self.candidates:
                for _ in range(5):
                    candidate.step()
            if any(candidate.elector.leads() for candidate in self.candidates):
                break
        else:
            pytest.fail("nobody leads after a minute of calm")
        for candidate in self.candidates:
            candidate.cut_off()


TwoCandidates.TestCase.settings = settings(max_examples=200, stateful_step_count=50)
TestTwoCandidates = TwoCandidates.TestCase
