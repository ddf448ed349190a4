import itertools

import pytest

from zerolayer_dev.testing.waiting import StillWaitingError, wait_for


def test_returns_what_satisfied_the_condition() -> None:
    counter = itertools.count()

    assert wait_for(lambda: next(counter), until=lambda n: n == 3, what="three", seconds=5, interval=0) == 3


def test_deadline_names_what_was_awaited_and_what_was_seen() -> None:
    with pytest.raises(StillWaitingError, match="the moon: not within 0 s; last seen: 'cheese'"):
        wait_for(lambda: "cheese", until=lambda _: False, what="the moon", seconds=0, interval=0)


def test_errors_of_the_look_pass_through() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_for(lambda: 1 // 0, what="never", seconds=1)
