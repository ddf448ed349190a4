import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from zerolayer_worker.engine.api import (
    EngineError,
    EngineEvent,
    Failed,
    Finished,
    FinishReason,
    GenerationRequest,
    LoadCounts,
    TextDelta,
)
from zerolayer_worker.engine.block_manager import BlockManager
from zerolayer_worker.engine.loop import DEAD_AGE_S, EngineLoop
from zerolayer_worker.engine.output import OutputProcessor
from zerolayer_worker.engine.scheduler import Scheduler, StepPlan
from zerolayer_worker.engine.sequence import Sequence
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.sampling.provider import Choice


@dataclass
class FakeRunner:
    """Says `a` to everybody, one step at a time where `hold` is set."""

    tokenizer: ModelTokenizer
    before_step: Callable[[StepPlan], None] = lambda _plan: None
    sampler: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(second_passes=3))

    def run(self, plan: StepPlan, _sequences: Mapping[str, Sequence]) -> dict[str, Choice]:
        self.before_step(plan)
        token = self.tokenizer.encode_text("a")[0]
        names = [row.request_id for row in plan.decode if row.last]
        names += [plan.prefill.request_id] if plan.prefill and plan.prefill.last else []
        return dict.fromkeys(names, Choice(token))


class Inbox:
    """Where a request's events go."""

    def __init__(self) -> None:
        self.events: list[EngineEvent] = []
        self.over = threading.Event()

    def __call__(self, event: EngineEvent) -> None:
        self.events.append(event)
        if isinstance(event, Finished | Failed):
            self.over.set()

    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))


class Held:
    """A step that runs until it may go on."""

    def __init__(self) -> None:
        self._entered = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, _plan: StepPlan) -> None:
        self._entered.set()
        assert self.go_on.wait(60)

    def until_it_runs(self) -> None:
        assert self._entered.wait(60)


@pytest.fixture
def runner(tiny_folder: Path) -> FakeRunner:
    return FakeRunner(ModelTokenizer(tiny_folder))


@pytest.fixture
def loop(runner: FakeRunner) -> Iterator[EngineLoop]:
    scheduler = Scheduler(rows=2, max_queue=2, blocks=BlockManager(pages=5_000_000, page=8, chunk=8))
    started = EngineLoop(runner, scheduler, runner.tokenizer, chunk=8)  # type: ignore[arg-type]
    yield started
    assert started.stats().kv_pages_used == 0
    started.close()


@pytest.fixture
def held(runner: FakeRunner) -> Held:
    """The runner's steps."""
    runner.before_step = Held()
    return runner.before_step


def submit(loop: EngineLoop, runner: FakeRunner, name: str = "r", count: int = 5) -> Inbox:
    inbox = Inbox()
    output = OutputProcessor(runner.tokenizer.detokenizer(), max_tokens=count, eos_ids=frozenset(), stops=())
    loop.submit(Sequence(GenerationRequest(name, (5, 6), count), output, inbox, seed=1))
    return inbox


def test_runs_a_request_to_its_end_and_parks(loop: EngineLoop, runner: FakeRunner) -> None:
    inbox = submit(loop, runner)
    assert inbox.over.wait(60)
    assert inbox.text() == "aaaaa"
    assert inbox.events[-1] == Finished(FinishReason.LENGTH, prompt_tokens=2, output_tokens=5)
    assert loop.stats().idle
    assert loop.stats().steps == 5
    assert loop.stats().sampler_second_passes == 3


@pytest.mark.parametrize(
    ("fault", "said", "dead"),
    [
        pytest.param(
            FloatingPointError("not numbers"), "the engine failed: FloatingPointError", True, id="fault"
        ),
        pytest.param(None, "the engine is closed", False, id="closed"),
    ],
)
def test_the_engines_end_reaches_everybody(
    loop: EngineLoop, runner: FakeRunner, fault: Exception | None, said: str, dead: bool
) -> None:
    def once_both_decode(plan: StepPlan) -> None:
        if fault is not None and len(plan.decode) == 2:
            raise fault

    runner.before_step = once_both_decode
    inboxes = [submit(loop, runner, name, count=10_000_000) for name in "ab"]
    if fault is None:
        loop.close()
    assert all(inbox.over.wait(60) for inbox in inboxes)
    assert [inbox.events[-1] for inbox in inboxes] == [Failed(said)] * 2
    assert loop.stats().running == 0
    assert (loop.stats().last_step_age_s == DEAD_AGE_S) is dead
    assert loop.stats().idle is not dead
    with pytest.raises(EngineError, match=said):
        submit(loop, runner)


def test_a_fault_in_one_requests_text_ends_that_request_alone(
    loop: EngineLoop, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = OutputProcessor(runner.tokenizer.detokenizer(), max_tokens=9, eos_ids=frozenset(), stops=())
    monkeypatch.setattr(bad, "push", lambda _token, _logprob: 1 / 0)
    inbox = Inbox()
    loop.submit(Sequence(GenerationRequest("bad", (5,), 9), bad, inbox, seed=1))
    good = submit(loop, runner, "good")
    assert inbox.over.wait(60)
    assert good.over.wait(60)
    assert inbox.events == [Failed("the answer's text could not be decoded")]
    assert good.text() == "aaaaa"


def test_a_request_given_up_during_a_step_gets_nothing_more(
    loop: EngineLoop, runner: FakeRunner, held: Held
) -> None:
    inbox = submit(loop, runner)
    held.until_it_runs()
    loop.abort("r")
    loop.abort("r")
    assert loop.stats().running == 0
    again = submit(loop, runner)  # the same id, while the step with the old one still runs
    held.go_on.set()
    assert again.over.wait(60)
    assert inbox.events == []
    assert again.text() == "aaaaa"


def test_the_end_says_how_long_a_request_queued_and_its_first_token_took(
    loop: EngineLoop, runner: FakeRunner, held: Held
) -> None:
    """Measured from submission; with both slots taken the third request queues behind whole answers."""
    first = [submit(loop, runner, name) for name in "ab"]
    held.until_it_runs()
    began = time.monotonic()
    late = submit(loop, runner, "c")
    held.go_on.set()
    assert all(inbox.over.wait(60) for inbox in [*first, late])
    took = time.monotonic() - began
    ends = [inbox.events[-1] for inbox in [*first, late]]
    assert all(isinstance(end, Finished) and 0 < end.queued_s < end.first_token_s for end in ends)
    assert isinstance(ends[2], Finished)
    assert ends[2].first_token_s < took


def test_a_hanging_step_shows_in_the_age_of_the_last(
    loop: EngineLoop, runner: FakeRunner, held: Held
) -> None:
    inbox = submit(loop, runner)
    held.until_it_runs()
    first = loop.stats().last_step_age_s
    assert not loop.stats().idle
    assert loop.stats().last_step_age_s >= first > 0
    held.go_on.set()
    assert inbox.over.wait(60)


def test_load_is_counted_while_requests_run_and_wait(
    loop: EngineLoop, runner: FakeRunner, held: Held
) -> None:
    """The integrals are exact at the instant of reading, though the loop stands in the middle of a step."""
    inboxes = [submit(loop, runner, name) for name in "abc"]
    held.until_it_runs()
    began = time.monotonic()
    first = loop.stats()
    ended = time.monotonic()
    while time.monotonic() < 2 * ended - began + 0.01:  # long against what reading takes
        continue
    later = time.monotonic()
    second = loop.stats()
    grown = _places(second.load) - _places(first.load)
    assert 3 * (later - ended) <= grown <= 3 * (time.monotonic() - began)
    assert second.load.busy_slot_seconds > first.load.busy_slot_seconds
    assert second.busy_share_seconds > first.busy_share_seconds
    held.go_on.set()
    assert all(inbox.over.wait(60) for inbox in inboxes)
    assert (loop.stats().load.received, loop.stats().load.served) == (3, 3)


def _places(load: LoadCounts) -> float:
    return load.busy_slot_seconds + load.waiting_request_seconds


def test_counters_only_grow_while_many_come_and_go(loop: EngineLoop, runner: FakeRunner) -> None:
    """A scraper reads all the while; in the end every slot-second belongs to a request that was served."""
    scraped: list[LoadCounts] = []
    over = threading.Event()

    def scrape() -> None:
        while not over.is_set():
            scraped.append(loop.stats().load)

    scraper = threading.Thread(target=scrape)
    scraper.start()
    for number in range(200):
        inbox = submit(loop, runner, str(number), count=1 + number % 4)
        if number % 3 == 0:
            loop.abort(str(number))
        else:
            assert inbox.over.wait(60)
    over.set()
    scraper.join()
    last = loop.stats().load
    scraped.append(last)
    for name in LoadCounts.__slots__:
        values = [getattr(counts, name) for counts in scraped]
        assert values == sorted(values)
    assert last.received == 200
    assert 133 <= last.served <= 200
    assert last.busy_slot_seconds == pytest.approx(last.served_slot_seconds)


def test_what_ran_when_load_was_forgotten_is_never_counted(
    loop: EngineLoop, runner: FakeRunner, held: Held
) -> None:
    inbox = submit(loop, runner)
    held.until_it_runs()
    loop.forget_load()
    held.go_on.set()
    assert inbox.over.wait(60)
    assert loop.stats().load == LoadCounts()


def test_a_failed_engine_is_busy_no_more(loop: EngineLoop, runner: FakeRunner) -> None:
    def fail(_plan: StepPlan) -> None:
        raise FloatingPointError

    runner.before_step = fail
    assert submit(loop, runner).over.wait(60)
    first, second = loop.stats(), loop.stats()
    assert first.busy_share_seconds == second.busy_share_seconds
    assert first.load == second.load
    assert first.load.served == 1
