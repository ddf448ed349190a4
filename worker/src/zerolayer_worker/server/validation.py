"""From a body's bytes to a validated model, with errors that name the field as the real APIs do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import pydantic_core
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from zerolayer_worker.server import limits, structure
from zerolayer_worker.server.errors import ApiError, Protocol

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(slots=True)
class Blocks:
    """Validation's context: the content blocks of the request met so far."""

    met: int = 0


class Strict(BaseModel):
    """Base of every request model: no coercion, no unknown field, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: object) -> object:
        if isinstance(value, dict) and len(cast("dict[str, object]", value)) > limits.MAX_FIELDS:
            raise refused(f"Input should have at most {limits.MAX_FIELDS} fields")
        return cast("object", value)


def parse_json(body: bytes) -> dict[str, object]:
    """Parses a JSON object: UTF-8, at most about 200 levels deep, neither NaN nor Infinity.

    Raises:
        ApiError: 400; 413 where it has too much structure.
    """
    if not body:
        raise ApiError(400, "The request has no body; it must be a JSON object")
    if structure.exceeds(body, limits.MAX_STRUCTURE):
        raise ApiError(
            413,
            f"The request body holds more than {limits.MAX_STRUCTURE} objects, lists and fields;"
            " send fewer messages, content blocks and tools, or join their texts",
        )
    try:
        value: object = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(400, f"The request body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ApiError(400, "The request body must be a JSON object")
    return cast("dict[str, object]", value)


def validate(model: type[ModelT], body: dict[str, object], protocol: Protocol) -> ModelT:
    """Validates a body against a request model.

    Raises:
        ApiError: 400 whose message and `param` name the first field at fault.
    """
    try:
        return model.model_validate(body, context=Blocks())
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        param = ".".join(str(part) for part in first["loc"] if not str(part).startswith("<"))[:200]
        unknown = first["type"] == "extra_forbidden"
        message = first["msg"]
        if unknown and protocol is Protocol.OPENAI:
            message = "Unknown parameter"
        raise ApiError(
            400,
            f"{param}: {message}" if param else message,
            param=param or None,
            code="unknown_parameter" if unknown else None,
        ) from None


def refused(message: str) -> PydanticCustomError:
    """A validation error with a message of our own, which may hold braces."""
    return PydanticCustomError("refused", "{message}", {"message": message})


def not_built(*harmless: object, hint: str = "") -> BeforeValidator:
    """Marks a field of the real API that is not built: refused by name, never ignored.

    Args:
        harmless: values that ask for nothing and therefore pass, as null does.
        hint: what to do instead.
    """

    def check(value: object) -> object:
        if value is None or any(type(value) is type(good) and value == good for good in harmless):
            return value
        raise refused("is not supported by this server" + (f"; {hint}" if hint else ""))

    return BeforeValidator(check)


def no_effect(*kinds: type, largest: int = 4096) -> BeforeValidator:
    """Marks a field that cannot change an answer (billing, tracing, cache hints): checked, then unused.

    Args:
        kinds: accepted types.
        largest: characters or entries at most.
    """

    def check(value: object) -> object:
        if value is not None and not isinstance(value, kinds):
            raise refused(f"Input should be a valid {kinds[0].__name__}")
        if isinstance(value, str | dict) and len(cast("str | dict[str, object]", value)) > largest:
            raise refused("Input is too long")
        return cast("object", value)

    return BeforeValidator(check)


def tagged(key: str, expected: Sequence[str], what: str) -> BeforeValidator:
    """Checks the tag of a union's member, with a shorter message than the union's own.

    Args:
        key: name of the tag.
        expected: its built values.
        what: the member, for the message.
    """

    def check(value: object) -> object:
        tag = cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
        if tag not in expected:
            raise refused(
                f"{what} of {key} {str(tag)[:40]!r} is not supported; expected {', '.join(expected)}"
            )
        return cast("object", value)

    return BeforeValidator(check)


def by(key: str) -> Discriminator:
    """Chooses a union's member by a tag that `tagged` has checked; members carry it as `Tag("<tag>")`.

    The angle brackets keep the tag out of error messages, which are to name fields alone.
    """

    def tag_of(value: object) -> str:
        return f"<{cast('dict[str, object]', value)[key]}>"

    return Discriminator(tag_of)


def text_or_list(what: str) -> BeforeValidator:
    """A string is short for a list of one text member; a request's lists have a bound together.

    Args:
        what: the members, for the message.
    """

    def check(value: object, info: ValidationInfo[Blocks]) -> object:
        items = [{"type": "text", "text": value}] if isinstance(value, str) else value
        if not isinstance(items, list):
            raise refused(f"Input should be a string or a list of {what}")
        info.context.met += len(cast("list[object]", items))
        if info.context.met > limits.MAX_BLOCKS:
            raise refused(
                f"a request should have at most {limits.MAX_BLOCKS} {what} in all; join their texts"
            )
        return cast("object", items)

    return BeforeValidator(check)
