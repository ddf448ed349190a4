"""Mode and intent of a request: every combination of header, beta, body and pool."""

import pytest
from starlette.datastructures import Headers

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.server.errors import ApiError
from zerolayer_worker.server.intent_policy import (
    IntentPolicy,
    SamplingFields,
    check_headers,
    check_ranges,
    decide_intent,
    refuse_sampling_fields,
)

HEADER = "anthropic-sampling-intent"
BETA = "anthropic-beta"
ONLY_BALANCED = IntentPolicy(Intent.BALANCED, frozenset({Intent.BALANCED}))
DETERMINISTIC = IntentPolicy(Intent.DETERMINISTIC)


@pytest.mark.parametrize(
    ("headers", "body", "policy", "expected"),
    [
        ({}, None, IntentPolicy(), None),
        ({BETA: "prompt-caching-2024-07-31"}, None, IntentPolicy(), None),
        ({BETA: "zero-layer-2024"}, None, IntentPolicy(), Intent.BALANCED),
        ({BETA: "tools-2024-08-06"}, None, DETERMINISTIC, Intent.DETERMINISTIC),
        ({BETA: "other-1, zero-layer-2024"}, None, DETERMINISTIC, Intent.DETERMINISTIC),
        ({BETA: "zero-layer-2024x"}, None, IntentPolicy(), None),
        ({HEADER: "creative"}, None, IntentPolicy(), Intent.CREATIVE),
        ({HEADER: " Creative "}, None, IntentPolicy(), Intent.CREATIVE),
        ({HEADER: "creative", BETA: "zero-layer-2024"}, None, DETERMINISTIC, Intent.CREATIVE),
        ({}, "deterministic", IntentPolicy(), Intent.DETERMINISTIC),
        ({HEADER: "creative"}, "creative", IntentPolicy(), Intent.CREATIVE),
        ({HEADER: "balanced"}, None, ONLY_BALANCED, Intent.BALANCED),
    ],
)
def test_the_intent(
    headers: dict[str, str], body: str | None, policy: IntentPolicy, expected: Intent | None
) -> None:
    assert decide_intent(headers, body, policy) is expected


def several(*lines: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.encode(), value.encode()) for name, value in lines])


def test_a_header_on_several_lines_is_read_whole() -> None:
    betas = several((BETA, "prompt-caching-2024-07-31"), (BETA, "zero-layer-2024"))
    assert decide_intent(betas, None, IntentPolicy()) is Intent.BALANCED
    same = several((HEADER, "creative"), (HEADER, "creative"))
    assert decide_intent(same, None, IntentPolicy()) is Intent.CREATIVE


def test_two_intents_are_refused_not_the_second_ignored() -> None:
    with pytest.raises(ApiError, match="unknown intent 'deterministic, creative'"):
        decide_intent(several((HEADER, "deterministic"), (HEADER, "creative")), None, IntentPolicy())


@pytest.mark.parametrize(
    ("headers", "body", "policy", "param", "named"),
    [
        ({HEADER: "wild"}, None, IntentPolicy(), HEADER, "deterministic, balanced, creative"),
        ({HEADER: ""}, None, IntentPolicy(), HEADER, "unknown intent"),
        ({}, "wild", IntentPolicy(), "intent", "unknown intent"),
        ({HEADER: "creative"}, "balanced", IntentPolicy(), "intent", "contradicts"),
        ({HEADER: "creative"}, None, ONLY_BALANCED, HEADER, "allowed: balanced"),
        ({}, "creative", ONLY_BALANCED, "intent", "allowed: balanced"),
    ],
)
def test_refused_intents(
    headers: dict[str, str], body: str | None, policy: IntentPolicy, param: str, named: str
) -> None:
    with pytest.raises(ApiError, match=named) as caught:
        decide_intent(headers, body, policy)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_the_look_alike_header_is_refused() -> None:
    with pytest.raises(ApiError, match=f"send {HEADER} instead"):
        check_headers({"x-anthropic-sampling-intent": "creative"})
    check_headers({HEADER: "creative"})


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (SamplingFields(temperature=-0.1), "temperature"),
        (SamplingFields(temperature=1.1), "temperature"),
        (SamplingFields(top_p=0.0), "top_p"),
        (SamplingFields(top_p=1.1), "top_p"),
        (SamplingFields(top_k=-1), "top_k"),
        (SamplingFields(top_k=2**40), "top_k"),
        (SamplingFields(min_p=1.0), "min_p"),
        (SamplingFields(min_p=-0.1), "min_p"),
        (SamplingFields(repetition_penalty=0.0), "repetition_penalty"),
        (SamplingFields(repetition_penalty=-1.0), "repetition_penalty"),
        (SamplingFields(repetition_penalty=101.0), "repetition_penalty"),
        (SamplingFields(presence_penalty=2.1), "presence_penalty"),
        (SamplingFields(frequency_penalty=-2.1), "frequency_penalty"),
    ],
)
def test_classic_parameters_have_ranges(fields: SamplingFields, param: str) -> None:
    with pytest.raises(ApiError, match=f"{param}: Input should be") as caught:
        check_ranges(fields, 1.0)
    assert caught.value.param == param
    check_ranges(SamplingFields(temperature=1.1, top_p=1.0, top_k=0, min_p=0.0), 2.0)


@pytest.mark.parametrize(
    "fields",
    [
        SamplingFields(),
        SamplingFields(temperature=0),
        SamplingFields(temperature=0.0),
        SamplingFields(repetition_penalty=1, presence_penalty=0.0, frequency_penalty=0),
    ],
)
def test_temperature_zero_and_penalties_of_nothing_are_ignored(fields: SamplingFields) -> None:
    refuse_sampling_fields(fields)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (SamplingFields(temperature=0.1), "temperature"),
        (SamplingFields(temperature=1), "temperature"),
        (SamplingFields(top_p=1.0), "top_p"),
        (SamplingFields(temperature=0, top_k=0), "top_k"),
        (SamplingFields(min_p=0.0), "min_p"),
        (SamplingFields(repetition_penalty=1.1), "repetition_penalty"),
        (SamplingFields(presence_penalty=0.5), "presence_penalty"),
        (SamplingFields(frequency_penalty=-0.5), "frequency_penalty"),
    ],
)
def test_any_other_sampling_parameter_is_refused(fields: SamplingFields, param: str) -> None:
    with pytest.raises(ApiError, match="temperature is deprecated in zero-layer mode") as caught:
        refuse_sampling_fields(fields)
    assert caught.value.param == param
    assert param in caught.value.message
