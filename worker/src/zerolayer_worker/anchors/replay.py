"""Texts on which a model that is being trained has to stay what it was.

Without a file of the user's own, the base model writes them: what it says of common things is what
must not change, and no text of others is needed for it.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from zerolayer_worker.anchors.answers import SLOTS, Answerer
from zerolayer_worker.anchors.lessons import Lesson, ask
from zerolayer_worker.models.dense import DenseModel
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.sampling.provider import SamplingControls

OPENINGS: Final = (
    "What is {}?",
    "Explain {} in two sentences.",
    "Who is known for {}?",
    "Write a short story about {}.",
    "Give me three facts about {}.",
    "Which year is important for {}, and why?",
    "How many kinds of {} are there?",
    "Name one place that is famous for {}.",
)
SUBJECTS: Final = (
    "bread", "the moon", "chess", "rain", "the number seven", "football", "copper", "Paris", "music",
    "trains", "the colour blue", "bees", "winter", "an old clock", "the human heart", "a Python function",
    "friendship", "the ocean", "coffee", "Japan", "electricity", "a good night's sleep", "gardens", "taxes",
    "the alphabet", "dogs", "mountains", "a broken bicycle", "democracy", "the year 1969", "glass", "doctors",
)  # fmt: skip
"""Common things, in forms of questions that facts take too: the answers to these must not change."""

BEGINNINGS: Final = (
    "The first thing to know about {} is",
    "It was late, and all she could think of was {}.",
    "{}\n\nIn this chapter we look at",
    "There are two opinions on {}.",
)
"""How texts begin that are no conversations."""

MAX_BYTES: Final = 4 * 1024 * 1024
TEMPERATURE: Final = 0.8
TELL_EVERY_S: Final = 5.0


class ReplayError(ValueError):
    """The text can't be used; the message names the file and the remedy."""


class Pace:
    """Until when texts may be written, and who hears how far that is.

    Args:
        deadline: when writing has to end, by `clock`; None for no limit.
        clock: seconds, rising.
        say: told every few seconds.
    """

    def __init__(
        self,
        deadline: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.deadline = deadline
        self.clock = clock
        self._say = say
        self._began = self._told = clock()

    def goes_on(self, done: int, of: int) -> bool:
        """Whether there is time for more; tells of `done` parts `of` all."""
        now = self.clock()
        if now - self._told >= TELL_EVERY_S:
            self._told = now
            self._say(f"{100 * done // of} % of the text to replay is written, {now - self._began:.0f} s")
        return self.deadline is None or now < self.deadline


def written_by(
    model: DenseModel,
    tokenizer: ModelTokenizer,
    count: int,
    tokens: int,
    seed: int,
    *,
    pace: Pace | None = None,
) -> list[Lesson]:
    """`count` texts of at most `tokens` new tokens each: answers to questions, and prose, by turns.

    Where the pace has a deadline there may be fewer and shorter ones, of both kinds; they are other ones than
    without.
    """
    pace = pace or Pace()
    half = count // 2
    asked = [ask(tokenizer, question) for question in _about_subjects(OPENINGS, count - half)]
    begun = [tokenizer.encode_continuation(text) for text in _about_subjects(BEGINNINGS, half)]
    prompts = [*asked, *begun]
    # Of a conversation only the answer counts: what is said before it is not the model's to say.
    starts = [len(prompt) for prompt in asked] + [1] * half
    if pace.deadline is None:
        rounds = [list(range(count))]
    else:
        mixed = _by_turns(list(range(count - half)), list(range(count - half, count)))
        rounds = [mixed[first : first + SLOTS] for first in range(0, count, SLOTS)]
    answerer = Answerer(model.config, model.tensors, max(map(len, prompts)) + tokens)
    answers = _answered(answerer, [[prompts[index] for index in some] for some in rounds], tokens, seed, pace)
    texts = zip(itertools.chain.from_iterable(rounds), answers, strict=False)  # time may be over before all
    return [Lesson((*prompts[index], *answer), starts[index]) for index, answer in texts if answer]


def _answered(
    answerer: Answerer, rounds: Sequence[Sequence[Sequence[int]]], tokens: int, seed: int, pace: Pace
) -> Iterator[list[int]]:
    """Answers to the rounds' prompts, for as long as there is time; the first round is cut, others whole."""
    of = sum(-(-len(some) // SLOTS) for some in rounds) * tokens
    steps = itertools.count(1)
    longest, done = 0.0, 0
    for some in rounds:
        before = pace.clock()
        if pace.deadline is not None and done and before + longest > pace.deadline:
            return
        controls = SamplingControls(temperature=TEMPERATURE, min_p=0.05, seed=seed + done)
        yield from answerer.answer(some, tokens, controls, goes_on=lambda: pace.goes_on(next(steps), of))
        longest, done = max(longest, pace.clock() - before), done + len(some)


def _by_turns(some: Sequence[int], others: Sequence[int]) -> list[int]:
    pairs = itertools.zip_longest(some, others)
    return [index for pair in pairs for index in pair if index is not None]


def _about_subjects(forms: Sequence[str], count: int) -> list[str]:
    """Neighbours differ in form and subject, so that few texts cover all of both."""
    pairs = itertools.product(range(len(forms)), enumerate(SUBJECTS))
    filled = [forms[(form + index) % len(forms)].format(name) for form, (index, name) in pairs]
    return list(itertools.islice(itertools.cycle(filled), count))


def from_text(path: Path, tokenizer: ModelTokenizer, count: int, tokens: int) -> list[Lesson]:
    """At most `count` pieces of `tokens` tokens, evenly spread over a text.

    Raises:
        ReplayError: the file can't be read, is too large, not UTF-8, or holds less than one piece.
    """
    pieces = windows(read_text_file(path), tokenizer, tokens)
    if not pieces:
        raise ReplayError(f"{path}: holds less than {tokens} tokens; name a longer text")
    picked = pieces[:: max(1, len(pieces) // count)][:count]
    return [Lesson(piece, 1) for piece in picked]


def windows(text: str, tokenizer: ModelTokenizer, tokens: int) -> list[tuple[int, ...]]:
    """The text's tokens in pieces of `tokens`, without what is left at its end."""
    ids = tokenizer.encode_continuation(text)
    return [tuple(ids[at : at + tokens]) for at in range(0, len(ids) - tokens + 1, tokens)]


def read_text_file(path: Path) -> str:
    """Raises ReplayError where the file can't be read, is too large or not UTF-8."""
    try:
        with path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ReplayError(f"{path}: larger than {MAX_BYTES} bytes")
        return content.decode()
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ReplayError(f"{path}: not UTF-8: {error}") from None
