"""Texts on which a model that is being trained has to stay what it was.

Without a file of the user's own, the base model writes them: what it says of common things is what
must not change, and no text of others is needed for it.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from zerolayer_worker.anchors.answers import Answerer
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


class ReplayError(ValueError):
    """The text can't be used; the message names the file and the remedy."""


def written_by(
    model: DenseModel, tokenizer: ModelTokenizer, count: int, tokens: int, seed: int
) -> list[Lesson]:
    """`count` texts of at most `tokens` new tokens each: answers to questions, and prose, by turns."""
    half = count // 2
    asked = [ask(tokenizer, question) for question in _about_subjects(OPENINGS, count - half)]
    begun = [tokenizer.encode_continuation(text) for text in _about_subjects(BEGINNINGS, half)]
    prompts = [*asked, *begun]
    controls = SamplingControls(temperature=TEMPERATURE, min_p=0.05, seed=seed)
    answerer = Answerer(model.config, model.tensors, max(map(len, prompts)) + tokens)
    answers = answerer.answer(prompts, tokens, controls)
    # Of a conversation only the answer counts: what is said before it is not the model's to say.
    starts = [len(prompt) for prompt in asked] + [1] * half
    texts = zip(prompts, answers, starts, strict=True)
    return [Lesson((*prompt, *answer), start) for prompt, answer, start in texts if answer]


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
