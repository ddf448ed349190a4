"""The load that is offered, from what is observed."""

import pytest

from zerolayer_operator.decide.offered_load import offered_slots
from zerolayer_operator.observe.load import Counted, LoadSample


def sample(arrivals: float, busy: float, queued: float = 0.0, served: float | None = None) -> LoadSample:
    """A minute by its rates; each request takes 4 s."""
    ended = busy / 4 if served is None else served
    counted = Counted(60, 60 * arrivals, 60 * busy, 60 * queued, 60 * ended, 60 * ended * 4)
    return LoadSample(0.0, counted, 0.5, 1)


def test_while_nobody_waits_the_busy_slots_are_the_load() -> None:
    assert list(offered_slots([sample(1.0, 4.0), sample(2.0, 7.0)])) == [4.0, 7.0]


def test_with_a_queue_it_is_arrivals_by_their_time() -> None:
    found = list(offered_slots([sample(1.0, 4.0), sample(5.0, 8.0, queued=30.0)]))
    assert found == [4.0, pytest.approx(20.0)]


def test_a_gap_is_unknown_and_changes_nothing_else() -> None:
    found = list(offered_slots([sample(1.0, 4.0), LoadSample(0.0), sample(5.0, 8.0, queued=30.0)]))
    assert found == [4.0, None, pytest.approx(20.0)]


def test_how_long_requests_take_is_remembered_for_ten_minutes() -> None:
    """One sample a step, each about a minute: forty of them are ten minutes, not forty."""
    slow = LoadSample(0.0, Counted(60, 60, 60 * 16, 0, 60, 60 * 16), 0.5, 1)
    queue = sample(5.0, 8.0, queued=30.0)
    assert list(offered_slots([slow, *[sample(1.0, 4.0)] * 20, queue]))[-1] > 20.5
    assert list(offered_slots([slow, *[sample(1.0, 4.0)] * 45, queue]))[-1] == pytest.approx(20.0)


def test_what_rounding_leaves_of_forgotten_requests_tells_no_time() -> None:
    """Requests so long that none has ended within ten minutes, after others whose number is no whole one."""
    ended = [sample(1.0, 4.0, served=rate) for rate in (0.01, 0.01, 0.02)]
    queue = sample(0.0, 8.0, queued=30.0, served=0.0)
    arriving = sample(5.0, 8.0, queued=30.0, served=0.0)
    assert list(offered_slots([*ended, *[queue] * 40, arriving]))[-1] == 8.0


def test_a_request_that_is_hardly_one_tells_no_time() -> None:
    counted = Counted(60, 60, 60 * 8, 60 * 30, finished=1e-300, service_s=1e15)
    assert list(offered_slots([LoadSample(0.0, counted, 1.0, 1)])) == [8.0]
