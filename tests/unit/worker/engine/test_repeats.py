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
from zerolayer_worker.engine.block_manager import BlockManager
from zerolayer_worker.engine.loop import EngineLoop
from zerolayer_worker.engine.output import OutputProcessor
from zerolayer_worker.engine.repeats import (
    BUSY_S,
    MAX_PROMPT_TOKENS,
    MAX_SAMPLES,
    OWN_S,
    QUIET_S,
    Repeats,
    Sample,
)
from zerolayer_worker.engine.scheduler import Scheduler, StepPlan
from zerolayer_worker.engine.sequence import Sequence
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.sampling.provider import Choice

GREEDY = Params(temperature=0.0)
PROMPT = (5, 6)


def request(sampling: Params = GREEDY, prompt: int = 2, name: str = "r") -> GenerationRequest:
    return GenerationRequest(name, PROMPT * (prompt // 2), 5, sampling)


def sample(name: str = "r", count: int = 3, prompt: int = 2) -> Sample:
    return Sample(request(name=name, prompt=prompt), 1, (7,) * count)


def name_of(one: Sample | None) -> str | None:
    return one and one.request.request_id


def opened(share: float = 1.0, own: Sample | None = None, now: float = 0.0) -> Repeats:
    repeats = Repeats(share)
    if own is not None:
        repeats.keep(own)
    repeats.open(now)
    return repeats


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
    assert Repeats(share).wants(asked) is wanted


def test_the_newest_few_are_kept() -> None:
    repeats = opened()
    assert repeats.wait_s(0, 0) is None
    repeats.keep(sample(count=0))
    assert repeats.wait_s(0, 0) is None
    for number in range(MAX_SAMPLES + 3):
        repeats.keep(sample(str(number)))
    taken = [repeats.take().request.request_id for _ in range(MAX_SAMPLES)]
    assert taken == [str(number) for number in range(MAX_SAMPLES + 2, 2, -1)]
    assert repeats.wait_s(100, 0) is None


def test_one_that_was_given_up_has_another_turn() -> None:
    repeats = opened()
    repeats.given_up(sample("a"), 0, 1)
    assert name_of(repeats.take()) == "a"
    assert repeats.counts == RepeatCounts()


def test_of_its_own_the_last_of_the_shortest_is_asked_again_and_again() -> None:
    repeats = Repeats(1.0)
    for name, prompt in [("a", 2), ("b", 4), ("c", 2), ("d", 4)]:
        repeats.keep(sample(name, prompt=prompt))
    repeats.keep(sample("none", count=0))
    assert repeats.wait_s(1000, 0) is None
    assert repeats.take_among_clients(1000, 10) is None
    repeats.open(1000)
    assert repeats.wait_s(1000, 1000) == QUIET_S
    own = repeats.take()
    repeats.given_up(own, 1001, 1002)
    assert repeats.wait_s(1002, 1002) == QUIET_S
    assert repeats.take() is own
    repeats.compared(own, own.tokens, 1010, 1020)
    assert (name_of(own), repeats.wait_s(1020, 1020)) == ("c", OWN_S)
    repeats.keep(sample("client"))
    assert repeats.wait_s(1020, 1020) == QUIET_S
    client = repeats.take()
    repeats.compared(client, client.tokens, 1030, 1040)
    assert (name_of(client), repeats.wait_s(1040, 1040)) == ("client", OWN_S)
    assert repeats.take() is own


@pytest.mark.parametrize(
    ("kept", "own", "after", "taken"),
    [
        pytest.param(["a2", "b2"], None, BUSY_S, "b2", id="the newest"),
        pytest.param(["a2", "b2"], None, BUSY_S - 1, None, id="too early"),
        pytest.param(["a2", "b8"], None, BUSY_S, "a2", id="the newest that is short"),
        pytest.param(["a2"], "o2", BUSY_S, "a2", id="a client's first"),
        pytest.param(["a8"], "o2", OWN_S - 1, None, id="the own too early"),
        pytest.param(["a2"], "o2", OWN_S, "o2", id="the own, as none came to its end"),
        pytest.param(["a2"], "o8", OWN_S, "a2", id="the own is long"),
        pytest.param([], "o8", OWN_S, None, id="all are long"),
        pytest.param([], None, OWN_S, None, id="nothing is there"),
    ],
)
def test_what_is_asked_among_clients(
    kept: list[str], own: str | None, after: float, taken: str | None
) -> None:
    """So long after the last comparison, where prompts may have six tokens."""
    repeats = opened(own=sample(own, prompt=int(own[1:])) if own else None)
    repeats.compared(sample(), (), 100, 100)
    for name in kept:
        repeats.keep(sample(name, prompt=int(name[1:])))
    assert name_of(repeats.take_among_clients(100 + after, 6)) == taken
    left = [name_of(repeats.take()) for name in kept if name != taken]
    assert left == [name for name in reversed(kept) if name != taken]


def test_what_is_given_up_among_clients_rests_too() -> None:
    repeats = opened(share=0.1, own=sample("own"))
    assert repeats.take_among_clients(BUSY_S - 1, 6) is None
    own = repeats.take_among_clients(BUSY_S, 6)
    assert own is not None
    repeats.given_up(own, BUSY_S, BUSY_S + 2)
    assert repeats.take_among_clients(BUSY_S + 2 + 17, 6) is None
    assert repeats.take_among_clients(BUSY_S + 2 + 18, 6) is own


@given(share=st.floats(0.01, 1), works=st.lists(st.floats(0.001, 10), min_size=1, max_size=20))
def test_no_more_than_its_share_of_the_time_is_spent(share: float, works: list[float]) -> None:
    repeats = opened(share)
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
    scheduler = Scheduler(rows=2, max_queue=2, blocks=BlockManager(pages=99, page=8, chunk=8))
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


def test_nothing_is_asked_again_before_clients_come(client: Client, runner: Runner) -> None:
    assert client.ask("a").wait(60)
    assert client.ask("b", Params(temperature=0.7)).wait(60)
    assert runner.steps == 10
    client.loop.forget_load()
    assert client.ask("c", Params(temperature=0.7)).wait(60)
    until(lambda: client.loop.stats().repeats == RepeatCounts(same=1), what="its own is asked again")


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


def test_a_closing_engine_does_not_wait_for_it(
    client: Client, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.loop.forget_load()
    inside, go_on = threading.Event(), threading.Event()
    join = threading.Thread.join

    def hold() -> None:
        if runner.steps == 6:
            inside.set()
            assert go_on.wait(60)

    def let_it_go_on(thread: threading.Thread, timeout: float | None = None) -> None:
        go_on.set()
        join(thread, timeout)

    runner.hold = hold
    assert client.ask().wait(60)
    assert inside.wait(60)
    monkeypatch.setattr(threading.Thread, "join", let_it_go_on)
    client.loop.close()
    assert runner.steps == 7
    assert client.loop.stats().repeats == RepeatCounts()
