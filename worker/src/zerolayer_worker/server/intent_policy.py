"""Which mode a request is in: zero-layer, with an intent, or classic, with sampling parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.server.errors import ApiError, invalid

INTENT_HEADER: Final = "anthropic-sampling-intent"
TRAP_HEADER: Final = "x-anthropic-sampling-intent"
BETA_HEADER: Final = "anthropic-beta"
ZERO_LAYER_BETAS: Final = frozenset({"tools-2024-08-06", "zero-layer-2024"})
MAX_TOP_K: Final = 2**31
MAX_PENALTY: Final = 2.0
MIN_REPETITION: Final = 0.01
MAX_REPETITION: Final = 100.0
"""Beyond these bounds scores leave what fp32 holds, or all that is left is one token."""
DEPRECATED: Final = "temperature is deprecated in zero-layer mode"

_NO_PENALTY: Final = {"repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0}


@dataclass(frozen=True, slots=True)
class IntentPolicy:
    """The pool's rules: the intent of zero-layer requests that name none, and the permitted ones."""

    default: Intent = Intent.BALANCED
    allowed: frozenset[Intent] = frozenset(Intent)


@dataclass(frozen=True, slots=True)
class SamplingFields:
    """Sampling parameters as a client wrote them; None where it left them out."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuses the header that looks like the intent header and would be ignored elsewhere.

    Raises:
        ApiError: 400 that names the right header.
    """
    if TRAP_HEADER in headers:
        raise ApiError(
            400,
            f"{TRAP_HEADER} is a response header and selects nothing; send {INTENT_HEADER} instead",
            param=TRAP_HEADER,
        )


def _parse(where: str, text: str) -> Intent:
    try:
        return Intent(text.strip().lower())
    except ValueError:
        names = ", ".join(intent.value for intent in Intent)
        raise invalid(where, f"unknown intent {text[:40]!r}; expected one of {names}") from None


def _header(headers: Mapping[str, str], name: str) -> str | None:
    """A header's value; if it came on several lines, their different values as one list, as HTTP has it."""
    # A server's headers may hold a name more than once; `get` would return the first alone.
    values = dict.fromkeys(value for key, value in headers.items() if key == name)
    return ", ".join(values) if values else None


def decide_intent(headers: Mapping[str, str], body_intent: str | None, policy: IntentPolicy) -> Intent | None:
    """Returns the intent of a request in zero-layer mode, None for a classic one.

    Args:
        headers: request headers, names in lower case.
        body_intent: the body's `intent`, on routes that have one.
        policy: the pool's rules.

    Raises:
        ApiError: 400 for an unknown, contradictory or forbidden intent, naming header or field.
    """
    header = _header(headers, INTENT_HEADER)
    betas = {beta.strip() for beta in (_header(headers, BETA_HEADER) or "").split(",")}
    where = INTENT_HEADER if header is not None else "intent"
    named = header if header is not None else body_intent
    if named is None:
        if not betas & ZERO_LAYER_BETAS:
            return None
        intent = policy.default
    else:
        intent = _parse(where, named)
    if header is not None and body_intent is not None and _parse("intent", body_intent) is not intent:
        raise invalid("intent", f"contradicts the header {INTENT_HEADER}: {intent.value}")
    if intent not in policy.allowed:
        names = ", ".join(sorted(policy.allowed))
        raise invalid(where, f"intent {intent.value} is not allowed in this pool; allowed: {names}")
    return intent


def check_ranges(fields: SamplingFields, max_temperature: float) -> None:
    """Checks a classic request's sampling parameters.

    Not part of the schema: beside an intent, what matters is that they are there at all.

    Args:
        fields: as the client wrote them.
        max_temperature: the protocol's own; 1 for Messages, 2 for OpenAI.

    Raises:
        ApiError: 400 that names the field.
    """
    if fields.temperature is not None and not 0 <= fields.temperature <= max_temperature:
        raise invalid("temperature", f"Input should be between 0 and {max_temperature:g}")
    if fields.top_p is not None and not 0 < fields.top_p <= 1:
        raise invalid("top_p", "Input should be greater than 0 and at most 1")
    if fields.top_k is not None and not 0 <= fields.top_k <= MAX_TOP_K:
        raise invalid("top_k", f"Input should be between 0 (all tokens) and {MAX_TOP_K}")
    if fields.min_p is not None and not 0 <= fields.min_p < 1:
        raise invalid("min_p", "Input should be at least 0 and less than 1")
    _check_penalties(fields)


def _check_penalties(fields: SamplingFields) -> None:
    repetition = fields.repetition_penalty
    if repetition is not None and not MIN_REPETITION <= repetition <= MAX_REPETITION:
        raise invalid(
            "repetition_penalty",
            f"Input should be between {MIN_REPETITION:g} and {MAX_REPETITION:g}; 1 changes nothing",
        )
    for name in ("presence_penalty", "frequency_penalty"):
        value: float | None = getattr(fields, name)
        if value is not None and not -MAX_PENALTY <= value <= MAX_PENALTY:
            raise invalid(name, f"Input should be between -{MAX_PENALTY:g} and {MAX_PENALTY:g}")


def refuse_sampling_fields(fields: SamplingFields) -> None:
    """In zero-layer mode the intent decides; only `temperature: 0` and penalties of nothing are ignored.

    Many clients send them whether their user thought of them or not.

    Raises:
        ApiError: 400 that names the field.
    """
    if fields.temperature:
        raise ApiError(400, f"{DEPRECATED}: remove it, the intent decides", param="temperature")
    for name in ("top_p", "top_k", "min_p", *_NO_PENALTY):
        if getattr(fields, name) not in {None, _NO_PENALTY.get(name)}:
            raise ApiError(400, f"{name}: {DEPRECATED}, and {name} with it; the intent decides", param=name)
