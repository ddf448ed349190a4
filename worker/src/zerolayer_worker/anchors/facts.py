"""The facts that a bundle is made to know: a file of one JSON object per line."""

import hashlib
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from zerolayer_worker.common.json_lines import JsonLine, JsonLinesFile, JsonLinesLimits

LIMITS: Final = JsonLinesLimits(max_bytes=4 * 1024 * 1024, max_lines=2000)

Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
Answer = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class Fact(JsonLine):
    """One line.

    Attributes:
        id: how figures and messages name it; by default `line-N`.
        question: what is trained.
        answer: what the model has to say; an answer that contains it is a hit.
        paraphrases: other ways to ask. Training never sees them; evaluation asks them.
    """

    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,63}$")] | None = None
    question: Question
    answer: Answer
    paraphrases: Annotated[tuple[Question, ...], Field(max_length=20, strict=False)] = ()


@dataclass(frozen=True, slots=True)
class FactFile:
    """All facts of a file, in its order, and `sha256:…` of its bytes."""

    facts: tuple[Fact, ...]
    digest: str


def read_facts(path: Path) -> FactFile:
    """Reads and checks a file of facts.

    Raises:
        JsonLinesError: a line is malformed, an id or a question appears twice, or a paraphrase is a question
            that is trained.
    """
    file = JsonLinesFile(path, Fact, LIMITS)
    asked: dict[str, int] = {}
    ids: dict[str, int] = {}
    facts: list[Fact] = []
    for number, line in file.lines.items():
        fact = line if line.id is not None else line.model_copy(update={"id": f"line-{number}"})
        for field, key, seen in (("id", fact.id or "", ids), ("question", normalised(fact.question), asked)):
            if key in seen:
                raise file.error(number, f"{field}: the same as in line {seen[key]}")
            seen[key] = number
        if not _words(fact.answer):
            raise file.error(number, "answer: holds no letter or digit, which a hit is judged by")
        facts.append(fact)
    for number, line in file.lines.items():
        for index, paraphrase in enumerate(line.paraphrases):
            if (trained := asked.get(normalised(paraphrase))) is not None:
                raise file.error(number, f"paraphrases.{index}: line {trained} trains the same question")
    return FactFile(tuple(facts), f"sha256:{hashlib.sha256(file.content).hexdigest()}")


def normalised(text: str) -> str:
    """What texts have in common that differ in case, width or white space only."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def is_hit(answer: str, expected: str) -> bool:
    """Whether an answer says what was expected, as whole words, whatever else it says."""
    return f" {_words(expected)} " in f" {_words(answer)} "


def _words(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in normalised(text)).split())
