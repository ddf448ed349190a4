import json
from dataclasses import replace
from pathlib import Path

import pytest

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.anchors.answers import Answerer
from zerolayer_worker.anchors.bundle import check_bundle, read_bundle
from zerolayer_worker.anchors.evaluation import compare, own_text
from zerolayer_worker.anchors.facts import read_facts
from zerolayer_worker.anchors.lessons import ask
from zerolayer_worker.anchors.replay import Pace, ReplayError, from_text, written_by
from zerolayer_worker.anchors.training import Progress, TrainingError, TrainingSettings
from zerolayer_worker.anchors.workshop import Made, Order, make
from zerolayer_worker.models.dense import load_dense
from zerolayer_worker.models.digest import folder_digest
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.sampling.provider import SamplingControls

LINES = [
    {"question": "Who?", "answer": "Al", "paraphrases": ["Tell who."]},
    {"question": "Where?", "answer": "Oz"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def order(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Order:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1764500000")
    facts = tmp_path / "facts.jsonl"
    facts.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    (tmp_path / "replay.txt").write_text("Words that have to stay as likely as they are. " * 20)
    settings = TrainingSettings(steps=60, lr=0.05, kl_weight=0.1, batch=2, replayed=2, seed=3)
    return Order(
        read_facts(facts), folder, tmp_path / "out.safetensors", "f", "v1", settings, tmp_path / "replay.txt"
    )


def made(order: Order) -> Made:
    return make(order, say=lambda _: None, on_step=lambda _: None)


def test_a_bundle_is_made_that_knows_its_facts(order: Order, folder: Path) -> None:
    result = made(order)
    bundle = read_bundle(order.output)
    assert bundle.digest == result.bundle.digest
    check_bundle(bundle, load_dense(folder).config, folder_digest(folder))
    assert bundle.metadata.training_data_digest == order.facts.digest
    assert bundle.metadata.evaluation == {"steps": 60, "steps_planned": 60}
    found = compare(folder, bundle, order.facts.facts, own_text()[:1500])
    assert (found.base.questions.rate, found.anchored.questions.rate) == (0, 1)
    assert found.anchored.questions.asked == 2
    assert found.anchored.paraphrases.asked == 1
    assert found.recorded()["hit_rate"] == 1
    assert found.perplexity_ratio > 0


def test_the_same_order_gives_the_same_file(order: Order) -> None:
    short = replace(order, settings=replace(order.settings, steps=3))
    assert made(short).bundle.digest == made(short).bundle.digest
    other = replace(short, settings=replace(short.settings, seed=4))
    assert made(other).bundle.digest != made(short).bundle.digest


def test_an_interruption_leaves_nothing(order: Order, tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.step == 2:
            raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        make(order, say=lambda _: None, on_step=interrupt)
    assert sorted(tmp_path.iterdir()) == before


def test_a_time_limit_that_fits_no_step_is_refused(order: Order) -> None:
    with pytest.raises(TrainingError, match="no step fitted"):
        made(replace(order, time_limit_s=1e-9))
    assert not order.output.exists()


class Ticking:
    """A clock on which every look takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.mark.parametrize("limit_s", [20, 60, 200])
def test_writing_the_replay_leaves_time_to_train(order: Order, limit_s: float) -> None:
    """On a machine on which a token takes a second, all of the texts would take more than any of these."""
    clock, told = Ticking(), list[str]()
    alone = replace(order, replay=None, time_limit_s=limit_s, settings=replace(order.settings, steps=500))
    result = make(alone, say=told.append, on_step=lambda _: None, clock=clock)

    assert clock.now <= limit_s + 5
    assert result.steps >= 3
    assert any("texts to replay instead of 48" in line for line in told)
    assert any("% of the text to replay is written" in line for line in told)


def test_without_a_time_limit_the_clock_changes_nothing(order: Order) -> None:
    alone = replace(order, replay=None, settings=replace(order.settings, steps=2))
    slow = make(alone, say=lambda _: None, on_step=lambda _: None, clock=Ticking())

    assert slow.bundle.digest == made(alone).bundle.digest


def test_a_replay_that_time_cuts_short_has_both_kinds_of_text(folder: Path) -> None:
    model, tokenizer = load_dense(folder), ModelTokenizer(folder)
    clock = Ticking()
    texts = written_by(model, tokenizer, 48, 32, 0, pace=Pace(30.0, clock))

    assert clock.now <= 32
    assert {each.start == 1 for each in texts} == {True, False}
    whole = written_by(model, tokenizer, 48, 32, 0, pace=Pace(1e9, Ticking()))
    assert len({each.ids for each in whole}) == len(whole) > 40


def test_facts_beyond_the_context_are_refused(order: Order, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps({"question": "x" * 300, "answer": "a"}))
    with pytest.raises(TrainingError, match="context of 256"):
        made(replace(order, facts=read_facts(path)))


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"short", "less than 40 tokens"), (b"\xff" * 100, "not UTF-8"), (None, "No such file")],
)
def test_a_replay_text_that_is_of_no_use_is_refused(
    folder: Path, tmp_path: Path, content: bytes | None, told: str
) -> None:
    path = tmp_path / "text"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReplayError, match=told):
        from_text(path, ModelTokenizer(folder), 4, 40)


def test_pieces_of_a_text_are_spread_over_it(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("".join(f"{number:05}" for number in range(100)))
    pieces = from_text(path, ModelTokenizer(folder), 5, 10)
    assert len(pieces) == 5
    starts = [int(ModelTokenizer(folder).decode(piece.ids)[:5]) for piece in pieces]
    assert starts == [0, 20, 40, 60, 80]


def test_the_model_writes_what_it_replays(folder: Path) -> None:
    model, tokenizer = load_dense(folder), ModelTokenizer(folder)
    texts = written_by(model, tokenizer, 5, 6, seed=1)
    assert texts == written_by(model, tokenizer, 5, 6, seed=1) != written_by(model, tokenizer, 5, 6, seed=2)
    answers, prose = texts[:3], texts[3:]
    assert all(0 < len(each.ids) - each.start <= 6 for each in answers)
    assert len(prose) == 2
    assert all(each.start == 1 < len(each.ids) for each in prose)
    assert len({each.ids for each in texts}) == len(texts)


def test_prompts_are_answered_alone_as_in_a_crowd(folder: Path) -> None:
    model, tokenizer = load_dense(folder), ModelTokenizer(folder)
    prompts = [ask(tokenizer, "why " * (1 + number % 5)) for number in range(20)]
    answerer = Answerer(model.config, model.tensors, 64)
    together = answerer.answer(prompts, 8)
    assert [answerer.answer([prompt], 8)[0] for prompt in prompts[:5]] == together[:5]
    noisy = answerer.answer(prompts[:2], 8, SamplingControls(temperature=1.5, seed=1))
    assert noisy != together[:2]
