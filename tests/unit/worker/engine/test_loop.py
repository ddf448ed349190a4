import threading
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
    TextDelta,
)
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
        names = [row.request_id for row in plan.decode]
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


@pytest.fixture
def runner(tiny_folder: Path) -> FakeRunner:
    return FakeRunner(ModelTokenizer(tiny_folder))


@pytest.fixture
def loop(runner: FakeRunner) -> Iterator[EngineLoop]:
    scheduler = Scheduler(slots=2, max_queue=2, chunk=8)
    started = EngineLoop(runner, scheduler, runner.tokenizer, chunk=8)  # type: ignore[arg-type]
    yield started
    started.close()


def submit(loop: EngineLoop, runner: FakeRunner, name: str = "r", count: int = 5) -> Inbox:
    inbox = Inbox()
    output = OutputProcessor(runner.tokenizer.detokenizer(), max_tokens=count, eos_ids=frozenset(), stops=())
    loop.submit(Sequence(GenerationRequest(name, (5, 6), count), output, inbox, seed=1))
    return inbox


def test_runs_a_request_to_its_end_and_parks(loop: EngineLoop, runner: FakeRunner) -> None:
    inbox = submit(loop, runner)
    assert inbox.over.wait(10)
    assert inbox.text() == "aaaaa"
    assert inbox.events[-1] == Finished(FinishReason.LENGTH, prompt_tokens=2, output_tokens=5)
    assert loop.stats().idle
    assert loop.stats().steps == 5
    assert loop.stats().sampler_second_passes == 3


def test_a_fault_of_the_model_reaches_everybody_and_ends_the_engine(
    loop: EngineLoop, runner: FakeRunner
) -> None:
    def fail(plan: StepPlan) -> None:
        if len(plan.decode) == 2:
            raise FloatingPointError("not numbers")

    runner.before_step = fail
    inboxes = [submit(loop, runner, name, count=10_000) for name in "ab"]
    assert all(inbox.over.wait(10) for inbox in inboxes)
    assert [inbox.events[-1] for inbox in inboxes] == [Failed("the engine failed: FloatingPointError")] * 2
    assert loop.stats().last_step_age_s == DEAD_AGE_S
    assert not loop.stats().idle
    assert loop.stats().running == 0
    with pytest.raises(EngineError, match="FloatingPointError"):
        submit(loop, runner)


def test_a_fault_in_one_requests_text_ends_that_request_alone(
    loop: EngineLoop, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = OutputProcessor(runner.tokenizer.detokenizer(), max_tokens=9, eos_ids=frozenset(), stops=())
    monkeypatch.setattr(bad, "push", lambda _token, _logprob: 1 / 0)
    inbox = Inbox()
    loop.submit(Sequence(GenerationRequest("bad", (5,), 9), bad, inbox, seed=1))
    good = submit(loop, runner, "good")
    assert inbox.over.wait(10)
    assert good.over.wait(10)
    assert inbox.events == [Failed("the answer's text could not be decoded")]
    assert good.text() == "aaaaa"


def test_a_request_given_up_during_a_step_gets_nothing_more(loop: EngineLoop, runner: FakeRunner) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def hold(_plan: StepPlan) -> None:
        entered.set()
        assert go_on.wait(10)

    runner.before_step = hold
    inbox = submit(loop, runner)
    assert entered.wait(10)
    loop.abort("r")
    loop.abort("r")
    assert loop.stats().running == 0
    again = submit(loop, runner)  # the same id, while the step with the old one still runs
    go_on.set()
    assert again.over.wait(10)
    assert inbox.events == []
    assert again.text() == "aaaaa"


def test_closing_fails_what_is_open(loop: EngineLoop, runner: FakeRunner) -> None:
    inbox = submit(loop, runner, count=10_000_000)
    loop.close()
    assert inbox.events[-1] == Failed("the engine is closed")
    with pytest.raises(EngineError, match="closed"):
        submit(loop, runner)


def test_a_hanging_step_shows_in_the_age_of_the_last(loop: EngineLoop, runner: FakeRunner) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def hold(_plan: StepPlan) -> None:
        entered.set()
        assert go_on.wait(10)

    runner.before_step = hold
    inbox = submit(loop, runner)
    assert entered.wait(10)
    first = loop.stats().last_step_age_s
    assert not loop.stats().idle
    assert loop.stats().last_step_age_s >= first > 0
    go_on.set()
    assert inbox.over.wait(10)
