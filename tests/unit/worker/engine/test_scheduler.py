import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from zerolayer_worker.engine.scheduler import (
    DecodeRow,
    PrefillChunk,
    QueueFullError,
    Scheduler,
    StepPlan,
)


def scheduler(slots: int = 2, max_queue: int = 2, chunk: int = 10) -> Scheduler:
    return Scheduler(slots=slots, max_queue=max_queue, chunk=chunk)


def test_a_prompt_runs_in_chunks_and_then_decodes() -> None:
    one = scheduler()
    one.add("a", 25)
    assert [one.schedule().prefill for _ in range(3)] == [
        PrefillChunk("a", 0, 0, 10, last=False),
        PrefillChunk("a", 0, 10, 10, last=False),
        PrefillChunk("a", 0, 20, 5, last=True),
    ]
    plan = one.schedule()
    assert (plan.prefill, plan.decode) == (None, (DecodeRow("a", 0),))


def test_a_long_prompt_stalls_nobody() -> None:
    """The decoding sequence gets its token in every step, the short prompt its turn in the next one."""
    one = scheduler(slots=3)
    one.add("decoding", 1)
    one.schedule()
    one.add("long", 1000)
    one.schedule()
    one.add("short", 5)
    plans = [one.schedule() for _ in range(2)]
    assert {plan.prefill.request_id for plan in plans if plan.prefill} == {"long", "short"}
    assert all(DecodeRow("decoding", 0) in plan.decode for plan in plans)


def test_chunks_start_on_one_grid_whatever_else_runs() -> None:
    one = scheduler(slots=3)
    for name, size in (("a", 31), ("b", 9), ("c", 20)):
        one.add(name, size)
    chunks = [plan.prefill for plan in (one.schedule() for _ in range(8)) if plan.prefill]
    assert all(chunk.start % 10 == 0 for chunk in chunks)
    of_a = [(chunk.start, chunk.count) for chunk in chunks if chunk.request_id == "a"]
    assert of_a == [(0, 10), (10, 10), (20, 10), (30, 1)]


def test_slots_are_given_in_the_order_of_arrival() -> None:
    one = scheduler(slots=1, max_queue=3)
    for name in "abc":
        one.add(name, 1)
    served = []
    for _ in range(3):
        chunk = one.schedule().prefill
        assert chunk is not None
        served.append(chunk.request_id)
        one.remove(chunk.request_id)
    assert served == ["a", "b", "c"]
    assert one.empty


def test_says_who_got_a_slot_once() -> None:
    one = scheduler(slots=2)
    for name in "abc":
        one.add(name, 25)
    assert [one.schedule().admitted for _ in range(2)] == [("a", "b"), ()]
    one.remove("a")
    assert one.schedule().admitted == ("c",)


def test_the_queue_has_a_bound() -> None:
    one = scheduler(slots=1, max_queue=1)
    one.add("a", 1)
    one.add("b", 1)
    with pytest.raises(QueueFullError):
        one.add("c", 1)
    assert (one.running, one.waiting) == (0, 2)
    one.schedule()
    assert (one.running, one.waiting) == (1, 1)
    one.remove("a")
    one.add("c", 1)


def test_no_queue_still_serves_as_many_as_there_are_slots() -> None:
    one = scheduler(slots=2, max_queue=0)
    one.add("a", 1)
    one.add("b", 1)
    with pytest.raises(QueueFullError):
        one.add("c", 1)


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_removing_works_at_any_time_and_twice(steps: int) -> None:
    one = scheduler(slots=1)
    one.add("a", 15)
    for _ in range(steps):
        one.schedule()
    assert one.remove("a")
    assert not one.remove("a")
    assert one.empty
    assert one.schedule() == StepPlan(None, ())


def test_refuses_what_makes_no_sense() -> None:
    one = scheduler()
    one.add("a", 1)
    with pytest.raises(ValueError, match="'a' is in use"):
        one.add("a", 1)
    with pytest.raises(ValueError, match="at least one token"):
        one.add("b", 0)
    with pytest.raises(ValueError, match="slots and chunk"):
        scheduler(slots=0)


class SchedulerMachine(RuleBasedStateMachine):
    """Arrivals, steps and departures in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = scheduler(slots=3, max_queue=4, chunk=8)
        self.prompts: dict[str, int] = {}
        self.computed: dict[str, int] = {}
        self.slots: dict[str, int] = {}
        self.count = 0

    @rule(prompt=st.integers(1, 40))
    def arrive(self, prompt: int) -> None:
        self.count += 1
        name = str(self.count)
        if len(self.prompts) >= 7:
            with pytest.raises(QueueFullError):
                self.scheduler.add(name, prompt)
        else:
            self.scheduler.add(name, prompt)
            self.prompts[name] = prompt

    @rule()
    def step(self) -> None:
        plan = self.scheduler.schedule()
        done = {name for name, size in self.prompts.items() if self.computed.get(name, 0) == size}
        assert {row.request_id for row in plan.decode} == done
        placed = {row.request_id: row.slot for row in plan.decode}
        if chunk := plan.prefill:
            assert chunk.start == self.computed.get(chunk.request_id, 0)
            assert chunk.start % 8 == 0
            self.computed[chunk.request_id] = chunk.start + chunk.count
            assert chunk.last == (self.computed[chunk.request_id] == self.prompts[chunk.request_id])
            placed[chunk.request_id] = chunk.slot
        else:
            assert self.scheduler.running == len(done)
        for name, slot in placed.items():
            assert self.slots.setdefault(name, slot) == slot
        assert len(set(placed.values())) == len(placed)

    @precondition(lambda self: self.prompts)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.prompts)))
        assert self.scheduler.remove(name)
        for known in (self.prompts, self.computed, self.slots):
            known.pop(name, None)

    @invariant()
    def counts_agree(self) -> None:
        assert self.scheduler.running <= 3
        assert self.scheduler.running + self.scheduler.waiting == len(self.prompts)
        assert self.scheduler.spare == max(0, 3 - len(self.prompts))
        unfinished = [name for name, size in self.prompts.items() if self.computed.get(name, 0) < size]
        assert self.scheduler.prompting == bool(unfinished)

    def teardown(self) -> None:
        for name in self.prompts:
            self.scheduler.remove(name)
        assert self.scheduler.empty
        for name in "abc":
            self.scheduler.add(name, 1)
        slots = {plan.prefill.slot for plan in (self.scheduler.schedule() for _ in range(3)) if plan.prefill}
        assert slots == {0, 1, 2}


TestSchedulerMachine = SchedulerMachine.TestCase
