"""Reads files of one JSON object per line, and refuses what is malformed by line and field."""

import codecs
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

_POSITION: Final = re.compile(r" at line 1 column (\d+)$")
"""Where a parser that knows of one line alone sees a mistake; which line that is, we say ourselves."""

LineT = TypeVar("LineT", bound="JsonLine")


class JsonLinesError(ValueError):
    """The file can't be used; the message names file, line and field."""


class JsonLine(BaseModel):
    """Base of what a line holds: no value is coerced, and no field is accepted that nothing reads."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class JsonLinesLimits:
    """How large a file may be."""

    max_bytes: int
    max_lines: int


class JsonLinesFile(Generic[LineT]):
    """A file's lines by their numbers, and its bytes; a byte order mark before them is no part of a line."""

    def __init__(self, path: Path, model: type[LineT], limits: JsonLinesLimits) -> None:
        """Reads the file; empty lines count, but hold nothing.

        Raises:
            JsonLinesError: it can't be read, is too large, holds no line, or one is malformed.
        """
        self.path = path
        self.content = _content(path, limits.max_bytes)
        text = self.content.removeprefix(codecs.BOM_UTF8)  # as some editors write it
        self.lines: dict[int, LineT] = {
            number: self._parse(number, line, model)
            for number, line in enumerate(text.split(b"\n"), start=1)
            if line.strip()
        }
        if not self.lines:
            raise JsonLinesError(f"{path}: holds no line")
        if len(self.lines) > limits.max_lines:
            raise JsonLinesError(f"{path}: holds {len(self.lines)} lines, more than {limits.max_lines}")

    def error(self, number: int, message: str) -> JsonLinesError:
        """An error that names the line."""
        return JsonLinesError(f"{self.path}:{number}: {message}")

    def _parse(self, number: int, line: bytes, model: type[LineT]) -> LineT:
        try:
            return model.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            field = ".".join(map(str, first["loc"]))
            told = _POSITION.sub(r" at character \1", first["msg"])
            raise self.error(number, f"{field}: {told}" if field else told) from None


def _content(path: Path, max_bytes: int) -> bytes:
    try:
        with path.open("rb") as opened:
            content = opened.read(max_bytes + 1)
    except OSError as error:
        raise JsonLinesError(f"{path}: {error.strerror or error}") from None
    if len(content) > max_bytes:
        raise JsonLinesError(f"{path}: larger than {max_bytes} bytes")
    return content
