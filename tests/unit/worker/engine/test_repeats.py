"""Deterministic answers are asked for again while nothing else is to be done, and cost no client anything."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.waiting import wait_for
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.common.logs import configure_logging
from zerolayer_worker.engine import repeats as module
from zerolayer_worker.engine.api import EngineEvent, Failed, Finished, GenerationRequest, RepeatCounts
from zerolayer_worker.engine.api import SamplingParams as Params
from zerolayer_worker.engine.loop import EngineLoop
from zerolayer_worker.engine.output import OutputProcessor
from zerolayer_worker.engine.repeats import MAX_PROMPT_TOKENS, MAX_SAMPLES, QUIET_S, Repeats, Sample
from zerolayer_worker.engine.scheduler import Scheduler, StepPlan
from zerolayer_worker.engine.sequence import Sequence
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.sampling.provider import Choice

GREEDY = Params(temperature=0.0)
PROMPT = (5, 6)


def request(sampling: Params = GREEDY, prompt: int = 2, name: str = "r") -> GenerationRequest:
    return GenerationRequest(name, PROMPT * (prompt // 2), 5, sampling)


def sample(name: str = "r", count: int = 3) -> Sample:
    return Sample(request(name=name), 1, (7,) * count)


@pytest.mark.parametrize(
    ("share", "asked", "wanted"),
    [
        (0.5, request(), True),
        (0.0, request(), False),
        (0.5, request(Params(temperature=0.1)), False),
        (0.5, request(Params(temperature=0.1, seed=4)), False),
        (0.5, request(Params(intent=Intent.DETERMINISTIC)), True),
        (0.5, request(Params(intent=Intent.DETERMINISTIC, temperature=1.0)), True),
        (0.5, request(Params(intent=Intent.BALANCED, temperature=0.0)), False),
        (0.5, request(prompt=MAX_PROMPT_TOKENS), True),
        (0.5, request(prompt=MAX_PROMPT_TOKENS + 2), False),
    ],
)
def test_what_is_sampled(share: float, asked: GenerationRequest, wanted: bool) -> None:
    repeats = Repeats(share)
    assert not repeats.wants(asked)
    repeats.open()
    assert repeats.wants(asked) is wanted


def test_the_newest_few_are_kept() -> None:
    repeats = Repeats(1.0)
    assert repeats.wait_s(0, 0) is None
    repeats.keep(sample(count=0))
    assert repeats.wait_s(0, 0) is None
    for number in range(MAX_SAMPLES + 3):
        repeats.keep(sample(str(number)))
    taken = [repeats.take().request.request_id for _ in range(MAX_SAMPLES)]
    assert taken == [str(number) for number in range(MAX_SAMPLES + 2, 2, -1)]
    assert repeats.wait_s(100, 0) is None


def test_one_that_was_given_up_has_another_turn() -> None:
    repeats = Repeats(1.0)
    repeats.given_up(sample("a"), 0, 1)
    assert repeats.take().request.request_id == "a"
    assert repeats.counts == RepeatCounts()


@given(share=st.floats(0.01, 1), works=st.lists(st.floats(0.001, 10), min_size=1, max_size=20))
def test_no_more_than_its_share_of_the_time_is_spent(share: float, works: list[float]) -> None:
    repeats = Repeats(share)
    now = 0.0
    for work in works:
        repeats.keep(sample())
        now += repeats.wait_s(now, now) or 0.0
        assert repeats.wait_s(now, now - QUIET_S) == 0
        repeats.compared(repeats.take(), (7, 7, 7), now, now + work)
        now += work
    repeats.keep(sample())
    spent, passed = sum(works), now + (repeats.wait_s(now, -QUIET_S) or 0.0)
    assert spent <= share * passed * (1 + 1e-9)
    assert repeats.counts == RepeatCounts(same=len(works))


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_that_is_none(share: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Repeats(share)


@dataclass
class Runner:
    """Says `token` to everybody; `hold`, where it is set, is called before each step."""

    token: int = 9
    steps: int = 0
    hold: Callable[[], None] = lambda: None
    sampler: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(second_passes=0))

    def run(self, plan: StepPlan, _sequences: Mapping[str, Sequence]) -> dict[str, Choice]:
        self.hold()
        self.steps += 1
        names = [row.request_id for row in plan.decode]
        names += [plan.prefill.request_id] if plan.prefill and plan.prefill.last else []
        return dict.fromkeys(names, Choice(self.token))


@dataclass
class Client:
    """Asks and waits for the end."""

    loop: EngineLoop
    tokenizer: ModelTokenizer

    def ask(self, name: str = "r", sampling: Params = GREEDY) -> threading.Event:
        over = threading.Event()

        def deliver(event: EngineEvent) -> None:
            if isinstance(event, Finished | Failed):
                over.set()

        output = OutputProcessor(self.tokenizer.detokenizer(), max_tokens=5, eos_ids=frozenset(), stops=())
        self.loop.submit(Sequence(request(sampling, name=name), output, deliver, seed=1))
        return over


@pytest.fixture
def runner() -> Runner:
    return Runner()


@pytest.fixture
def client(tiny_folder: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(module, "QUIET_S", 0.0)
    tokenizer = ModelTokenizer(tiny_folder)
    scheduler = Scheduler(slots=2, max_queue=2, chunk=8)
    loop = EngineLoop(runner, scheduler, tokenizer, chunk=8, consistency_share=1.0)  # type: ignore[arg-type]
    yield Client(loop, tokenizer)
    loop.close()


def until(condition: Callable[[], bool], what: str) -> None:
    wait_for(condition, what=what, seconds=60)


def test_the_same_answer_counts_as_the_same_and_as_nothing_else(client: Client, runner: Runner) -> None:
    client.loop.forget_load()
    assert client.ask().wait(60)
    until(lambda: client.loop.stats().repeats == RepeatCounts(same=1), what="it is asked again")
    stats = client.loop.stats()
    assert runner.steps == 10
    assert (stats.load.received, stats.load.served) == (1, 1)
    assert stats.load.busy_slot_seconds == pytest.approx(stats.load.served_slot_seconds)
    until(lambda: client.loop.stats().idle, what="the engine is idle")


def test_another_answer_counts_as_different_and_is_logged_without_the_prompt(
    client: Client, runner: Runner
) -> None:
    log = StringIO()
    configure_logging("info", log)
    client.loop.forget_load()
    repeated = threading.Event()

    def hold() -> None:
        if runner.steps == 7:
            runner.token = 8
        if runner.steps >= 5:
            repeated.set()

    runner.hold = hold
    assert client.ask().wait(60)
    until(lambda: client.loop.stats().repeats == RepeatCounts(different=1), what="it is asked again")
    assert repeated.is_set()
    assert runner.steps == 8
    (line,) = (json.loads(line) for line in log.getvalue().splitlines())
    assert (line["level"], line["request_id"], line["tokens"]) == ("error", "r", 3)
    assert set(line) == {"time", "level", "logger", "message", "request_id", "tokens"}


def test_nothing_is_sampled_before_clients_come(client: Client, runner: Runner) -> None:
    assert client.ask().wait(60)
    client.loop.forget_load()
    assert client.ask("b", Params(temperature=0.7)).wait(60)
    assert client.ask("c").wait(60)
    until(lambda: client.loop.stats().repeats == RepeatCounts(same=1), what="the last is asked again")
    assert runner.steps == 20


def test_a_clients_request_takes_the_slot_within_a_step(client: Client, runner: Runner) -> None:
    """The repeated request is given up, leaves no trace in the load, and has its turn later."""
    client.loop.forget_load()
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        if runner.steps == 6:
            inside.set()
            assert go_on.wait(60)

    runner.hold = hold
    assert client.ask("a").wait(60)
    assert inside.wait(60)
    busy = client.loop.stats()
    assert (busy.running, busy.waiting, busy.idle) == (0, 0, False)
    over = client.ask("b", Params(temperature=0.7))
    assert (client.loop.stats().running, client.loop.stats().waiting) == (0, 1)
    go_on.set()
    assert over.wait(60)
    until(lambda: client.loop.stats().repeats == RepeatCounts(same=1), what="the first is asked again")
    assert runner.steps == 5 + 2 + 5 + 5
    assert (client.loop.stats().load.received, client.loop.stats().load.served) == (2, 2)


def test_idle_time_spent_so_is_no_busy_share(client: Client, runner: Runner) -> None:
    client.loop.forget_load()
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        if runner.steps == 5:
            inside.set()
            assert go_on.wait(60)

    runner.hold = hold
    assert client.ask().wait(60)
    assert inside.wait(60)
    first, second = client.loop.stats(), client.loop.stats()
    assert first.busy_share_seconds == second.busy_share_seconds
    assert first.load == second.load
    go_on.set()


def test_a_closing_engine_does_not_wait_for_it(client: Client, runner: Runner) -> None:
    client.loop.forget_load()
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        if runner.steps == 6:
            inside.set()
            assert go_on.wait(60)

    runner.hold = hold
    assert client.ask().wait(60)
    assert inside.wait(60)
    closer = threading.Thread(target=client.loop.close)
    closer.start()
    until(lambda: client.loop._closing, "the engine is told to close")
    go_on.set()
    closer.join()
    assert client.loop.stats().repeats == RepeatCounts()
