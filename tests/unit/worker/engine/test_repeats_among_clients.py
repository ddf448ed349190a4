"""A worker that is never idle asks again among its clients' requests, which notice nothing of it."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zerolayer_dev.testing.waiting import wait_for
from zerolayer_worker.engine import loop as loop_module
from zerolayer_worker.engine import repeats as repeats_module
from zerolayer_worker.engine.api import (
    EngineEvent,
    Failed,
    Finished,
    GenerationRequest,
    OverloadedError,
    RepeatCounts,
    SamplingParams,
)
from zerolayer_worker.engine.block_manager import BlockManager
from zerolayer_worker.engine.loop import EngineLoop
from zerolayer_worker.engine.output import OutputProcessor
from zerolayer_worker.engine.scheduler import Scheduler, StepPlan
from zerolayer_worker.engine.sequence import Sequence
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.sampling.provider import Choice

CHUNK = 8
SLOTS = 3
REPEAT = "repeat"


def names(plan: StepPlan) -> set[str]:
    return {row.request_id for row in plan.decode} | ({plan.prefill.request_id} if plan.prefill else set())


@dataclass
class Gate:
    """Lets a step with clients' requests begin when it is told to; those without go on at once."""

    fault: bool = False
    other_token: bool = False
    free: bool = False
    leave: bool = False
    at: StepPlan | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)
    sampler: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(second_passes=0))

    def run(self, plan: StepPlan, _sequences: Mapping[str, Sequence]) -> dict[str, Choice]:
        with self.changed:
            if names(plan) - {REPEAT}:
                self.at = plan
                assert self.changed.wait_for(lambda: self.leave or self.free, 60)
                self.leave = False
            if self.fault:
                raise FloatingPointError
        chosen = [row.request_id for row in plan.decode]
        chosen += [plan.prefill.request_id] if plan.prefill and plan.prefill.last else []
        return {name: Choice(8 if self.other_token and name == REPEAT else 9) for name in chosen}

    def go_on(self) -> None:
        with self.changed:
            self.leave, self.at = True, None
            self.changed.notify()


@dataclass
class Stepped:
    """A loop that takes its steps for clients one by one, by a clock that stands still in between."""

    loop: EngineLoop
    gate: Gate
    tokenizer: ModelTokenizer
    clock: SimpleNamespace
    ended: dict[str, EngineEvent] = field(default_factory=dict[str, EngineEvent])

    def submit(self, name: str, *, prompt: int = 2, count: int = 1000, greedy: bool = False) -> bool:
        """False where the queue is full."""

        def deliver(event: EngineEvent) -> None:
            if isinstance(event, Finished | Failed):
                self.ended[name] = event

        output = OutputProcessor(
            self.tokenizer.detokenizer(), max_tokens=count, eos_ids=frozenset(), stops=()
        )
        params = SamplingParams(temperature=0.0 if greedy else 0.7)
        try:
            self.loop.submit(
                Sequence(GenerationRequest(name, (5,) * prompt, count, params), output, deliver, 1)
            )
        except OverloadedError:
            return False
        self.settle()
        return True

    def step(self) -> set[str]:
        """The step that stands at the gate; returns who is in the next."""
        if self.gate.at is not None:
            steps = self.loop.stats().steps
            self.gate.go_on()
            wait_for(lambda: self.loop.stats().steps > steps, what="it ends", seconds=60, interval=0.001)
            self.settle()
        return self.next

    def settle(self) -> None:
        """Waits for the gate, or for the end of all that clients asked."""

        def settled() -> bool:
            stats = self.loop.stats()
            return self.gate.at is not None or stats.running + stats.waiting == 0

        wait_for(settled, what="the loop stands", seconds=60, interval=0.001)

    @property
    def next(self) -> set[str]:
        return names(self.gate.at) if self.gate.at is not None else set()

    def figures(self) -> tuple[object, ...]:
        """All that tells of load."""
        stats = self.loop.stats()
        load = (stats.busy_share, stats.busy_share_seconds, *astuple(stats.load))
        return stats.running, stats.waiting, stats.idle, stats.slots, *(round(each, 9) for each in load)

    def until_asked_again(self) -> None:
        """Time passes, and a repeated request is among those of the next step."""
        self.clock.now += 1
        assert REPEAT in self.step()


@contextmanager
def stepped(folder: Path, *, share: float = 1.0) -> Iterator[Stepped]:
    """Knows a request of its own, of three tokens; each second one is due among clients' requests."""
    clock = SimpleNamespace(now=100.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
        for name, seconds in {"QUIET_S": 0.0, "BUSY_S": 1.0, "OWN_S": 1.0}.items():
            patch.setattr(repeats_module, name, seconds)
        gate, tokenizer = Gate(), ModelTokenizer(folder)
        blocks = BlockManager(pages=999, page=CHUNK, chunk=CHUNK)
        scheduler = Scheduler(rows=SLOTS, max_queue=1, blocks=blocks)
        loop = EngineLoop(gate, scheduler, tokenizer, chunk=CHUNK, consistency_share=share)  # type: ignore[arg-type]
        one = Stepped(loop, gate, tokenizer, clock)
        one.submit("own", count=3, greedy=True)
        while "own" not in one.ended:
            one.step()
        loop.forget_load()
        try:
            yield one
        finally:
            gate.free = True
            gate.go_on()
            loop.close()


@pytest.fixture
def busy(tiny_folder: Path) -> Iterator[Stepped]:
    """With one client's request that goes on and on."""
    with stepped(tiny_folder) as one:
        one.submit("a")
        yield one


def compared(one: Stepped) -> RepeatCounts:
    """Once no repeated request is in the batch."""
    while REPEAT in one.step():
        continue
    return one.loop.stats().repeats


def test_a_busy_loop_compares_among_its_clients_requests(busy: Stepped) -> None:
    before = busy.loop.stats().repeats
    busy.until_asked_again()
    assert busy.next == {"a", REPEAT}
    assert (busy.loop.stats().running, busy.loop.stats().waiting) == (1, 0)
    assert compared(busy) == RepeatCounts(before.same + 1)
    assert REPEAT not in busy.step() | busy.step() | busy.step()


def test_another_token_in_a_batch_counts_as_different(busy: Stepped) -> None:
    busy.gate.other_token = True
    busy.until_asked_again()
    assert compared(busy).different == 1
    assert busy.ended.keys() == {"own"}


def test_a_saturated_loop_gives_up_and_asks_again_once_a_slot_is_free(busy: Stepped) -> None:
    before = busy.loop.stats().repeats
    assert busy.submit("b")
    busy.step()
    assert busy.step() == {"a", "b"}
    busy.until_asked_again()
    assert busy.step() == {"a", "b", REPEAT}
    assert busy.submit("c")
    assert busy.submit("d")
    assert not busy.submit("e")
    assert (busy.loop.stats().running, busy.loop.stats().waiting) == (2, 2)
    assert busy.step() == {"a", "b", "c"}
    for _ in range(5):
        busy.clock.now += 1
        assert busy.step() == {"a", "b", "c"}
    assert busy.loop.stats().repeats == before
    for name in "cd":
        busy.loop.abort(name)
    busy.until_asked_again()
    assert compared(busy) == RepeatCounts(before.same + 1)


def test_a_clients_prompt_takes_no_turns_with_a_repeated_one(busy: Stepped) -> None:
    """Nothing is asked again while a prompt is computed, nor goes on if its own is not when one comes."""
    busy.clock.now += 1
    assert busy.submit("b", prompt=3 * CHUNK)
    assert [busy.step() for _ in range(3)] == [{"a", "b"}] * 3
    assert busy.step() == {"a", "b", REPEAT}
    assert busy.submit("c")
    assert busy.step() == {"a", "b", "c"}


def test_a_prompt_of_more_than_one_chunk_is_not_asked_again_among_clients(
    busy: Stepped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats_module, "OWN_S", 1000.0)
    busy.until_asked_again()
    compared(busy)
    for length, asked in [(CHUNK + 1, False), (CHUNK, True)]:
        assert busy.submit(str(length), prompt=length, count=1, greedy=True)
        busy.clock.now += 1
        assert (REPEAT in set().union(*(busy.step() for _ in range(6)))) is asked


def test_a_repeated_request_goes_on_beside_one_that_finds_a_slot(busy: Stepped) -> None:
    busy.until_asked_again()
    busy.step()
    assert busy.submit("b")
    assert busy.step() == {"a", "b", REPEAT}


@pytest.mark.parametrize("fault", [False, True])
def test_the_loops_end_is_that_of_a_repeated_request_too(busy: Stepped, fault: bool) -> None:
    before = busy.loop.stats().repeats
    busy.until_asked_again()
    busy.gate.fault = fault
    busy.gate.free = True
    if fault:
        busy.gate.go_on()
        wait_for(lambda: "a" in busy.ended, what="the client learns of it", seconds=60, interval=0.001)
    else:
        closing = threading.Thread(target=busy.loop.close)
        closing.start()
        busy.gate.go_on()
        closing.join(60)
        assert not closing.is_alive()
    assert isinstance(busy.ended["a"], Failed)
    stats = busy.loop.stats()
    assert (stats.running, stats.waiting, stats.idle) == (0, 0, not fault)
    assert stats.repeats.different == before.different


Operation = tuple[str, int, int, bool]

OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.tuples(st.just("submit"), st.integers(1, 3 * CHUNK), st.integers(1, 6), st.booleans()),
    st.tuples(st.just("abort"), st.integers(0, 4), st.just(0), st.just(False)),
    st.tuples(st.just("step"), st.integers(1, 4), st.just(0), st.just(False)),
    st.tuples(st.just("pass"), st.integers(1, 3), st.just(0), st.just(False)),
)


def played(one: Stepped, operations: list[Operation]) -> list[object]:
    """What is to be seen after each."""
    seen: list[object] = []
    for number, (kind, size, count, greedy) in enumerate(operations):
        if kind == "submit":
            seen.append(one.submit(str(number), prompt=size, count=count, greedy=greedy))
        elif kind == "abort":
            one.loop.abort(str(number - size))
        elif kind == "step":
            for _ in range(size):
                one.step()
        else:
            one.clock.now += size / 2
        seen += [sorted(one.ended), sorted(one.next - {REPEAT}), *one.figures()]
    return seen


BUSY: list[Operation] = [
    ("submit", 20, 6, True),
    ("pass", 3, 0, False),
    ("step", 4, 0, False),
    *[("submit", 2, 6, True), ("pass", 3, 0, False), ("step", 2, 0, False)] * 6,
]


@settings(deadline=None, max_examples=40)
@given(operations=st.lists(OPERATIONS, max_size=25))
@example(operations=BUSY)
def test_load_is_that_of_a_loop_that_never_asks_again(tiny_folder: Path, operations: list[Operation]) -> None:
    """Whatever clients submit and give up, and when: each has its steps and its slot at the same times."""
    with stepped(tiny_folder, share=0.0) as one:
        without = played(one, operations)
        assert one.loop.stats().repeats == RepeatCounts()
    with stepped(tiny_folder) as one:
        assert played(one, operations) == without
