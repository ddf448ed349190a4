import pytest

from zerolayer_worker.engine.load_meter import WINDOW_S, LoadMeter


def meter() -> LoadMeter:
    return LoadMeter(slots=4, chunk=16)


def test_is_zero_without_work() -> None:
    assert meter().share(100.0) == 0.0


@pytest.mark.parametrize(
    ("decoded", "prefilled", "share"), [(4, 0, 1.0), (1, 0, 0.25), (4, 16, 1.0), (0, 8, 0.4), (4, 6, 0.5)]
)
def test_is_scheduled_over_schedulable(decoded: int, prefilled: int, share: float) -> None:
    busy = meter()
    for second in range(1, 31):
        busy.record(ended=float(second), seconds=1.0, decoded=decoded, prefilled=prefilled)
    assert busy.share(30.0) == pytest.approx(share, abs=0.08)


def test_idle_time_counts_as_idle_and_old_steps_not_at_all() -> None:
    busy = meter()
    busy.record(ended=10.0, seconds=WINDOW_S / 2, decoded=4, prefilled=0)
    assert busy.share(10.0) == pytest.approx(0.5)
    assert busy.share(10.0 + WINDOW_S + 1) == 0.0


def test_forgets_when_told_to() -> None:
    busy = meter()
    busy.record(ended=10.0, seconds=5.0, decoded=4, prefilled=0)
    busy.clear()
    assert busy.share(10.0) == 0.0
