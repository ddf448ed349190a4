"""What every API model shares: frozen, camelCase on the wire, and rules stated once for CEL and Python."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel


@dataclass(frozen=True)
class Rule:
    """A rule over several fields, as the API server checks it and as the operator does.

    Attributes:
        cel: The expression for ``x-kubernetes-validations``.
        message: What a user reads; names the fields.
        holds: The same rule over a model, or ``None`` where it compares with the object's former state.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool] | None


class ApiModel(BaseModel):
    """A part of the ZeroLayerPool API."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        strict=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        for rule in self.rules:
            if rule.holds is not None and not rule.holds(self):
                raise ValueError(rule.message)
        return self

    def to_wire(self) -> dict[str, Any]:
        """The model as the API server sees it: camelCase, absent values left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
