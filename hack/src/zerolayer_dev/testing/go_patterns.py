"""JSON Schema whose patterns mean what they mean to the API server and to Helm, which are written in Go."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
from jsonschema.validators import extend

# An escaped character, a class of characters, or an anchor.
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$")


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    r"""The same pattern for Python.

    `$` is the end of the text and not also before a last line break; classes such as `\s` hold ASCII alone.
    """
    return re.compile(_TOKEN.sub(lambda token: r"\Z" if token[0] == "$" else token[0], pattern), re.ASCII)


def _pattern(
    _validator: Any, wanted: str, instance: Any, _schema: Any
) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, str) and not compiled(wanted).search(instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {wanted!r}")


Draft7Validator = extend(jsonschema.Draft7Validator, {"pattern": _pattern})
Draft202012Validator = extend(jsonschema.Draft202012Validator, {"pattern": _pattern})
