import pytest

from zerolayer_worker.engine.load_meter import WINDOW_S, LoadMeter


def meter() -> LoadMeter:
    return LoadMeter(slots=4, chunk=16)


def step(busy: LoadMeter, began: float, ended: float, *, decoded: int = 4, prefilled: int = 0) -> None:
    busy.begin(began, decoded=decoded, prefilled=prefilled)
    busy.end(ended)


def test_is_zero_without_work() -> None:
    assert meter().share(100.0) == 0.0
    assert meter().seconds(100.0) == 0.0


@pytest.mark.parametrize(
    ("decoded", "prefilled", "share"), [(4, 0, 1.0), (1, 0, 0.25), (4, 16, 1.0), (0, 8, 0.4), (4, 6, 0.5)]
)
def test_is_scheduled_over_schedulable(decoded: int, prefilled: int, share: float) -> None:
    busy = meter()
    for second in range(1, 31):
        step(busy, second - 1.0, float(second), decoded=decoded, prefilled=prefilled)
    assert busy.share(30.0) == pytest.approx(share)
    assert busy.seconds(30.0) == pytest.approx(30 * share)


def test_idle_time_counts_as_idle_and_old_steps_not_at_all() -> None:
    busy = meter()
    step(busy, 10.0 - WINDOW_S / 2, 10.0)
    assert busy.share(10.0) == pytest.approx(0.5)
    assert busy.share(10.0 + WINDOW_S + 1) == 0.0
    assert busy.seconds(1000.0) == pytest.approx(WINDOW_S / 2)


def test_of_a_step_that_began_before_the_window_the_rest_counts() -> None:
    busy = meter()
    step(busy, 0.0, 10 * WINDOW_S)
    assert busy.share(10 * WINDOW_S) == pytest.approx(1.0)
    assert busy.share(10 * WINDOW_S + 5) == pytest.approx(2 / 3)


def test_a_step_counts_while_it_runs() -> None:
    busy = meter()
    busy.begin(100.0, decoded=2, prefilled=0)
    assert busy.seconds(140.0) == pytest.approx(20.0)
    assert busy.share(103.0) == pytest.approx(3 * 0.5 / WINDOW_S)
    busy.end(150.0)
    assert busy.seconds(500.0) == pytest.approx(25.0)


def test_forgets_when_told_to() -> None:
    busy = meter()
    step(busy, 5.0, 10.0)
    busy.begin(10.0, decoded=4, prefilled=0)
    busy.clear()
    busy.end(12.0)
    assert (busy.share(12.0), busy.seconds(12.0)) == (0.0, 0.0)
