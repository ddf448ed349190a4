from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from zerolayer_worker.engine.api import LoadCounts
from zerolayer_worker.engine.load_account import LoadAccount


def test_a_requests_way_through_the_engine() -> None:
    account = LoadAccount()
    account.arrived("r", 100.0)
    account.started("r", 103.0)
    account.left("r", 110.0)
    assert account.counts(1000.0) == LoadCounts(
        received=1, served=1, busy_slot_seconds=7.0, waiting_request_seconds=3.0, served_slot_seconds=7.0
    )


def test_counts_up_to_now_while_a_request_waits_or_runs() -> None:
    account = LoadAccount()
    account.arrived("r", 100.0)
    assert account.counts(102.0).waiting_request_seconds == 2.0
    account.started("r", 103.0)
    counts = account.counts(105.0)
    assert (counts.waiting_request_seconds, counts.busy_slot_seconds) == (3.0, 2.0)
    assert (counts.served, counts.served_slot_seconds) == (0, 0.0)


def test_a_request_given_up_in_the_queue_is_received_and_not_served() -> None:
    account = LoadAccount()
    account.arrived("r", 1.0)
    account.left("r", 5.0)
    account.left("r", 6.0)
    assert account.counts(9.0) == LoadCounts(received=1, waiting_request_seconds=4.0)


def test_what_came_before_the_account_counts_for_nothing() -> None:
    account = LoadAccount()
    account.started("warm-up", 1.0)
    account.left("warm-up", 5.0)
    assert account.counts(9.0) == LoadCounts()


@dataclass
class Life:
    """One request's instants, as an observer would write them down."""

    arrived: float
    started: float | None = None
    left: float | None = None


class AccountMachine(RuleBasedStateMachine):
    """Compares the counters with sums over every request's life; times are multiples of 1/8 s, so exactly."""

    def __init__(self) -> None:
        super().__init__()
        self.account = LoadAccount()
        self.now = 1000.0
        self.lives: list[Life] = []
        self.last = LoadCounts()

    def waiting(self) -> list[int]:
        return [i for i, life in enumerate(self.lives) if life.started is None and life.left is None]

    def running(self) -> list[int]:
        return [i for i, life in enumerate(self.lives) if life.started is not None and life.left is None]

    @rule(eighths=st.integers(0, 4000))
    def pass_time(self, eighths: int) -> None:
        self.now += eighths / 8

    @rule()
    def arrive(self) -> None:
        self.account.arrived(str(len(self.lives)), self.now)
        self.lives.append(Life(self.now))

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        which = data.draw(st.sampled_from(self.waiting()))
        self.account.started(str(which), self.now)
        self.lives[which].started = self.now

    @precondition(lambda self: self.waiting() or self.running())
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        which = data.draw(st.sampled_from(self.waiting() + self.running()))
        self.account.left(str(which), self.now)
        self.lives[which].left = self.now

    @precondition(lambda self: self.lives)
    @rule(data=st.data())
    def leave_again(self, data: st.DataObject) -> None:
        gone = [i for i, life in enumerate(self.lives) if life.left is not None]
        if gone:
            self.account.left(str(data.draw(st.sampled_from(gone))), self.now)

    @invariant()
    def equals_the_sum_over_all_lives(self) -> None:
        served = [life for life in self.lives if life.started is not None and life.left is not None]
        assert self.account.counts(self.now) == LoadCounts(
            received=len(self.lives),
            served=len(served),
            busy_slot_seconds=sum(self.until_now(life.started, life.left) for life in self.lives),
            waiting_request_seconds=sum(
                self.until_now(life.arrived, life.left if life.started is None else life.started)
                for life in self.lives
            ),
            served_slot_seconds=sum(self.until_now(life.started, life.left) for life in served),
        )

    @invariant()
    def never_shrinks(self) -> None:
        counts = self.account.counts(self.now)
        pairs = zip(
            (getattr(self.last, name) for name in LoadCounts.__slots__),
            (getattr(counts, name) for name in LoadCounts.__slots__),
            strict=True,
        )
        assert all(before <= after for before, after in pairs)
        self.last = counts

    def until_now(self, start: float | None, end: float | None) -> float:
        return 0.0 if start is None else (self.now if end is None else end) - start


TestAccountMachine = AccountMachine.TestCase


@pytest.mark.parametrize("reads", [0, 1, 7])
def test_reading_changes_nothing(reads: int) -> None:
    account = LoadAccount()
    account.arrived("r", 1.0)
    for read in range(reads):
        account.counts(1.0 + read / 8)
    assert account.counts(3.0).waiting_request_seconds == 2.0
