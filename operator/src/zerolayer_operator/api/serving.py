"""What clients may ask for, and when a worker counts as warm."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from zerolayer_operator.api.base import ApiModel, Rule
from zerolayer_operator.api.types import ObjectName, SecretKey


class Intent(StrEnum):
    """What kind of answer a request wants."""

    DETERMINISTIC = "deterministic"
    BALANCED = "balanced"
    CREATIVE = "creative"


class IntentsSpec(ApiModel):
    """Which intents the pool serves."""

    rules = (
        Rule(
            cel="self.default in self.allowed",
            message="spec.intents.default must be one of spec.intents.allowed",
            holds=lambda intents: intents.default in intents.allowed,
        ),
        Rule(
            cel="self.allowed.all(a, self.allowed.exists_one(b, a == b))",
            message="spec.intents.allowed must not name an intent twice",
            holds=lambda intents: len(set(intents.allowed)) == len(intents.allowed),
        ),
    )

    default: Annotated[
        Intent,
        Field(description="Intent of a request in zero-layer mode that names none."),
    ] = Intent.BALANCED
    allowed: Annotated[
        tuple[Intent, ...],
        Field(
            description="Intents that requests may name; any other gets a 400.", min_length=1, max_length=3
        ),
    ] = (Intent.DETERMINISTIC, Intent.BALANCED, Intent.CREATIVE)


class WarmupSpec(ApiModel):
    """What a worker must answer, and how steadily, before it is ready."""

    prompt: Annotated[
        str | None,
        Field(
            description="Prompt that a worker answers before it is ready; a built-in one if absent.",
            min_length=1,
            max_length=8192,
        ),
    ] = None
    max_tokens: Annotated[
        int,
        Field(description="Tokens that each warm-up request generates.", ge=1, le=4096),
    ] = 16
    timeout_seconds: Annotated[
        int,
        Field(
            description="Longest time until a started worker is warm; one that takes longer is restarted.",
            ge=10,
            le=7200,
        ),
    ] = 600
    settle_ratio: Annotated[
        float,
        Field(
            description="A worker is warm once a warm-up request took at most this many times the fastest.",
            ge=1.05,
            le=100,
        ),
    ] = 1.5


class ApiKeySecretReference(ApiModel):
    """The Secret whose values are the pool's API keys."""

    name: Annotated[
        ObjectName,
        Field(
            description="Secret in the pool's namespace; mounted into workers, never read by the operator."
        ),
    ]
    key: Annotated[
        SecretKey | None,
        Field(
            description="The one key of the Secret that holds an API key; every key of it counts if absent."
        ),
    ] = None
