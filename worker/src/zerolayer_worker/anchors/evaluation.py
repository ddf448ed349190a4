"""What a bundle knows, and what it costs: hits on facts and paraphrases, drift on unrelated text."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from zerolayer_worker.anchors.answers import Answerer
from zerolayer_worker.anchors.bundle import Bundle, apply_bundle, check_bundle
from zerolayer_worker.anchors.facts import Fact, is_hit
from zerolayer_worker.anchors.lessons import Lesson, ask
from zerolayer_worker.anchors.replay import ReplayError, windows
from zerolayer_worker.anchors.training import fact_loss
from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.dense import DenseModel, load_dense
from zerolayer_worker.models.digest import folder_digest
from zerolayer_worker.models.tokenizer import ModelTokenizer

EXTRA_TOKENS: Final = 12
"""Room for what a model says before the answer."""

FIGURE_DIGITS: Final = 4

WINDOW: Final = 128
"""Tokens of unrelated text that are read at once."""


@dataclass(frozen=True, slots=True)
class Recall:
    """How often a model said what was expected.

    Attributes:
        asked: number of questions.
        missed: ids of the facts that were answered otherwise, once for each question.
    """

    asked: int
    missed: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Share of hits; 0 where nothing was asked."""
        return 1 - len(self.missed) / self.asked if self.asked else 0.0


class Examination:
    """Questions of a file of facts, with their answers' length in tokens."""

    def __init__(self, facts: Sequence[Fact], tokenizer: ModelTokenizer) -> None:
        self._facts = facts
        self._tokenizer = tokenizer
        self._room = EXTRA_TOKENS + max(len(tokenizer.encode_continuation(fact.answer)) for fact in facts)

    @property
    def length(self) -> int:
        """The longest prompt with its answer, in tokens."""
        asked = [q for fact in self._facts for q in (fact.question, *fact.paraphrases)]
        return self._room + max(len(ask(self._tokenizer, question)) for question in asked)

    def sit(self, config: ModelConfig, tensors: Mapping[str, Tensor]) -> tuple[Recall, Recall]:
        """Asks a model all questions, then all paraphrases; it answers greedily."""
        answerer = Answerer(config, tensors, self.length)
        pairs = [(fact, question) for fact in self._facts for question in (fact.question, *fact.paraphrases)]
        prompts = [ask(self._tokenizer, question) for _, question in pairs]
        answers = answerer.answer(prompts, self._room)
        said = [self._tokenizer.decode(answer) for answer in answers]
        trained: list[tuple[Fact, bool]] = []
        others: list[tuple[Fact, bool]] = []
        for (fact, question), text in zip(pairs, said, strict=True):
            (trained if question is fact.question else others).append((fact, is_hit(text, fact.answer)))
        return _recall(trained), _recall(others)


def _recall(results: Sequence[tuple[Fact, bool]]) -> Recall:
    return Recall(len(results), tuple(fact.id or "" for fact, hit in results if not hit))


@torch.no_grad()
def perplexity(model: DenseModel, pieces: Sequence[Sequence[int]]) -> float:
    """Of a text in pieces of equal length, each read from its second token on."""
    losses = [float(fact_loss(model, [Lesson(tuple(piece), 1)])) for piece in pieces]
    return math.exp(sum(losses) / len(losses))


@dataclass(frozen=True, slots=True)
class Figures:
    """One model's: its hits on questions and on paraphrases, its perplexity on unrelated text."""

    questions: Recall
    paraphrases: Recall
    perplexity: float


class Comparison:
    """A bundle beside its base model, on the same questions and text."""

    def __init__(self, base: Figures, anchored: Figures) -> None:
        self.base = base
        self.anchored = anchored

    @property
    def perplexity_ratio(self) -> float:
        """How much less likely unrelated text has become: 1 is not at all."""
        return self.anchored.perplexity / self.base.perplexity

    def recorded(self) -> dict[str, float]:
        """The figures as a bundle's metadata keeps them."""
        figures = {
            "questions": float(self.anchored.questions.asked),
            "hit_rate": self.anchored.questions.rate,
            "base_hit_rate": self.base.questions.rate,
            "perplexity_ratio": self.perplexity_ratio,
        }
        if self.anchored.paraphrases.asked:
            figures |= {
                "paraphrases": float(self.anchored.paraphrases.asked),
                "paraphrase_hit_rate": self.anchored.paraphrases.rate,
                "base_paraphrase_hit_rate": self.base.paraphrases.rate,
            }
        return {name: round(value, FIGURE_DIGITS) for name, value in figures.items()}


def compare(folder: Path, bundle: Bundle, facts: Sequence[Fact], unrelated: str) -> Comparison:
    """Asks the base model and the model with the bundle.

    Raises:
        ModelFolderError, ChatTemplateError: the model can't be used.
        BundleError: the bundle does not belong to it.
        ReplayError: the text is shorter than one window.
    """
    model, tokenizer = load_dense(folder), ModelTokenizer(folder)
    check_bundle(bundle, model.config, folder_digest(folder))
    pieces = windows(unrelated, tokenizer, WINDOW)
    if not pieces:
        raise ReplayError(f"--unrelated: holds less than {WINDOW} tokens; name a longer text")
    examination = Examination(facts, tokenizer)

    def figures() -> Figures:
        return Figures(*examination.sit(model.config, model.tensors), perplexity(model, pieces))

    base = figures()
    apply_bundle(bundle, model.tensors)
    return Comparison(base, figures())


def own_text() -> str:
    """Prose of this project, on many subjects, which no bundle is trained on."""
    return Path(__file__).with_name("unrelated.txt").read_text(encoding="utf-8")
