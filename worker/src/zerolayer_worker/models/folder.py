"""Reads the JSON files of a model folder, and refuses what is malformed by file and key."""

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

FileT = TypeVar("FileT", bound="FolderFile")
SHOWN_CHARS = 60


class ModelFolderError(ValueError):
    """The model folder can't be served; the message names the file, the key and what is wrong."""


class FolderFile(BaseModel):
    """Base of what such a file holds: no value is coerced, keys that are not read may hold anything."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


def read_file(path: Path, model: type[FileT]) -> FileT:
    """Reads one of the folder's JSON files.

    Raises:
        ModelFolderError: it is missing or can't be read, not JSON, not an object, or a value is of the
            wrong type.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ModelFolderError(f"{path}: file is missing") from None
    except OSError as error:
        raise ModelFolderError(f"{path}: {error.strerror or error}") from None
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise ModelFolderError(f"{path}: {_explain(error)}") from None


def read_text(path: Path) -> str:
    """Reads one of the folder's text files.

    Raises:
        ModelFolderError: it is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ModelFolderError(f"{path}: not UTF-8: {error}") from None


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return f"not valid JSON: {first['msg'].removeprefix('Invalid JSON: ')}"
    key = ".".join(map(str, first["loc"]))
    if not key:
        return "must hold a JSON object"
    if first["type"] == "missing":
        return f"{key} is missing"
    shown = json.dumps(first["input"], default=str)
    shown = shown if len(shown) <= SHOWN_CHARS else f"{shown[:SHOWN_CHARS]}…"
    return f"{key}: {first['msg']}, not {shown}"
