"""Words of others: in the pool's terms, and the same for the same."""

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, spec
from zerolayer_operator.api.revision import FrozenInputs
from zerolayer_operator.build.pod import pod_template
from zerolayer_operator.observe.wording import FIELDS, in_fields, one_line, same_words, without_pod

OWN_FLAGS = {"port", "ops-port", "revision"}
"""Flags that stand for no field of a pool."""


def test_every_flag_that_a_worker_gets_from_a_field_is_translated_back() -> None:
    full = spec(
        worker={
            "device": "cpu",
            "maxModelLen": 64,
            "memoryUtilization": 0.5,
            "cudaGraphs": True,
            "quantization": "int8",
        },
        warmup={"prompt": "Hi"},
        apiKeySecretRef={"name": "keys"},
        anchor={
            "version": "v1",
            "digest": f"sha256:{'1' * 64}",
            "source": {"image": {"reference": "a:1", "path": "b"}},
        },
    )
    template = pod_template("pool", "r", full, FrozenInputs(image="w:1"), DEFAULTS)
    _, *flags = template["spec"]["containers"][0]["args"]
    given = {flag.removeprefix("--").partition("=")[0] for flag in flags}

    assert given - OWN_FLAGS == FIELDS.keys() - {"model-path"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("max_model_len 9 exceeds 8", "spec.worker.maxModelLen 9 exceeds 8"),
        ("--max-model-len or --max-batch-size", "spec.worker.maxModelLen or spec.worker.maxBatchSize"),
        ("check --model-path, --device", "check spec.model.source, spec.worker.device"),
        ("--builtin=x: none", "spec.model.source.builtin.name=x: none"),
        ("no such --thing and other_thing", "no such --thing and other_thing"),
        ("the device is away", "the device is away"),
    ],
)
def test_flags_are_named_as_fields(said: str, told: str) -> None:
    assert in_fields(said) == told


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("after 1.5s on 10.0.0.1:4000", "after 12s on 10.0.0.1:9", True),
        ("id 7f00ab in a-1-b", "id 99 in a-22-b", True),
        ("no such file", "no such folder", False),
        ("no such file", "no such file or folder", False),
        ("", "", True),
        ("request 1a-b4 denied", "request 77-c0-d denied", True),
        ("denied: [b-policy, a-policy] said no", "denied: [a-policy, b-policy] said no", True),
        ("denied: [a-policy] said no", "denied: [b-policy] said no", False),
    ],
)
def test_only_figures_may_differ(first: str, second: str, same: bool) -> None:
    assert same_words(first, second) is same


def test_long_text_keeps_its_end() -> None:
    assert one_line("x " * 1000 + "\n the reason ").endswith("x the reason")
    assert len(one_line("x" * 1000)) == 601


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('pods "p-abc" is forbidden: exceeded quota: q', "forbidden: exceeded quota: q"),
        ('Pod "p-abc" is invalid: spec.x', "invalid: spec.x"),
        ('admission webhook "w" denied the request', 'admission webhook "w" denied the request'),
    ],
)
def test_pod_that_can_not_be_made_goes_unnamed(said: str, told: str) -> None:
    assert without_pod(said) == told
