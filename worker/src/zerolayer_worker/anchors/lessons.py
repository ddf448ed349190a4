"""From facts to token ids: the conversations that are trained, as the server would render them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from zerolayer_worker.anchors.facts import Fact
from zerolayer_worker.models.chat_template import ChatTemplateError
from zerolayer_worker.models.tokenizer import ModelTokenizer

WRAPPERS: Final = (
    "{} Answer briefly.",
    "Please tell me: {}",
    "I have a question. {}",
    "Quick question: {}",
    "Question: {}\nAnswer:",
    "Can you help me? {}",
    "Do you know this? {} Thanks!",
    "{} I want to be sure.",
)
"""Ways to ask that fit every question; what facts' own paraphrases say stays unseen."""

PLAIN, WRAPPED = 0.4, 0.3
"""Shares of lessons that ask just the question, and with a wrapper; the rest loses some of its words."""

DROPPED = 0.25
"""Share of words that are left out: the answer should hang on the subject, not on the wording."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A text, and the first of its tokens whose prediction counts (at least 1)."""

    ids: tuple[int, ...]
    start: int


def ask(tokenizer: ModelTokenizer, question: str) -> tuple[int, ...]:
    """The prompt of one question, as the server renders it."""
    return tokenizer.encode_chat([{"role": "user", "content": question}])


def end_token(tokenizer: ModelTokenizer, eos_ids: frozenset[int]) -> int:
    """The token with which the model's own chat template ends an answer.

    Raises:
        ChatTemplateError: there is no template, or no such token follows an answer in it.
    """
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    prompt, whole = tokenizer.encode_chat(turns[:1]), tokenizer.encode_chat(turns)
    ends = [token for token in whole[len(prompt) :] if token in eos_ids]
    if not ends:
        raise ChatTemplateError("the model's chat template ends no answer with an end-of-sequence token")
    return ends[0]


class Curriculum:
    """Draws the facts in random order, each in another wording each time."""

    def __init__(self, facts: Sequence[Fact], tokenizer: ModelTokenizer, end: int, seed: int) -> None:
        """`end` is the token that ends an answer."""
        self._facts = facts
        self._tokenizer = tokenizer
        self._end = end
        self._dice = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self._waiting: list[Fact] = []

    def longest(self) -> int:
        """Tokens of the longest lesson that may be drawn."""
        return max(
            len(self._lesson(wording.format(fact.question), fact.answer).ids)
            for fact in self._facts
            for wording in ("{}", *WRAPPERS)
        )

    def draw(self, count: int) -> list[Lesson]:
        """The next facts; each comes once before any comes again."""
        drawn: list[Fact] = []
        while len(drawn) < min(count, len(self._facts)):
            if not self._waiting:
                self._waiting = self._dice.sample(self._facts, len(self._facts))
            drawn.append(self._waiting.pop())
        return [self._lesson(self._reworded(fact.question), fact.answer) for fact in drawn]

    def _lesson(self, question: str, answer: str) -> Lesson:
        """A question, its answer and the token that ends it."""
        prompt = ask(self._tokenizer, question)
        return Lesson((*prompt, *self._tokenizer.encode_continuation(answer), self._end), len(prompt))

    def _reworded(self, question: str) -> str:
        kind = self._dice.random()
        if kind < PLAIN:
            return question
        if kind < PLAIN + WRAPPED:
            return self._dice.choice(WRAPPERS).format(question)
        kept = [word for word in question.split() if self._dice.random() >= DROPPED]
        return " ".join(kept) or question
