"""The golden set's file: one question per line, with what is expected of its answer."""

import hashlib
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from zerolayer_worker.common.json_lines import JsonLine, JsonLinesFile, JsonLinesLimits

LIMITS: Final = JsonLinesLimits(max_bytes=1024 * 1024, max_lines=1000)

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]


class Expectation(JsonLine):
    """What an answer has to be; case, width and white space make no difference.

    Attributes:
        contains: texts that all have to be in it.
        equals: all that it may say.
    """

    contains: Annotated[tuple[Text, ...], Field(min_length=1, max_length=20, strict=False)] | None = None
    equals: Text | None = None

    def met_by(self, answer: str) -> bool:
        """Whether an answer is as expected."""
        said = _plain(answer)
        if self.equals is not None and said != _plain(self.equals):
            return False
        return all(_plain(part) in said for part in self.contains or ())


class Item(JsonLine):
    """One line.

    Attributes:
        id: how reports name it.
        prompt: the user's turn.
        expect: what the answer has to be; None where only its change matters.
        change: whether the answers of both sides may differ; False asks for similar ones.
        max_tokens: the answer's length.
    """

    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,63}$")]
    prompt: Annotated[str, StringConstraints(max_length=20_000, pattern=r"\S")]
    expect: Expectation | None = None
    change: bool
    max_tokens: Annotated[int, Field(ge=1, le=1024)] = 48


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """All questions of a file, in its order, and `sha256:…` of its bytes."""

    items: tuple[Item, ...]
    digest: str


def read_golden(path: Path) -> GoldenSet:
    """Reads and checks a golden set.

    Raises:
        JsonLinesError: a line is malformed, says twice what is there already, or asks for nothing that could
            be judged.
    """
    file = JsonLinesFile(path, Item, LIMITS)
    seen: dict[str, int] = {}
    for number, item in file.lines.items():
        if item.id in seen:
            raise file.error(number, f"id: the same as in line {seen[item.id]}")
        seen[item.id] = number
        if item.expect is None and item.change:
            raise file.error(
                number, "expect: is missing, and an answer that may change is judged by it alone"
            )
        if item.expect is not None and (item.expect.contains is None) == (item.expect.equals is None):
            raise file.error(number, "expect: takes either contains or equals")
    return GoldenSet(tuple(file.lines.values()), f"sha256:{hashlib.sha256(file.content).hexdigest()}")


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
