"""What makes a new revision, and what does not."""

from typing import Any

import pytest

from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing.observed import spec
from zerolayer_operator.api.revision import LIVE_FIELDS, REVISION_FIELDS, revision_hash, revision_inputs
from zerolayer_operator.api.scaling import AutoscalingSpec
from zerolayer_operator.api.spec import PoolSpec

NEW_REVISION: dict[str, dict[str, Any]] = {
    "model.name": {"model": {"name": "other", "source": {"builtin": {"name": "tiny"}}}},
    "model.source": {"model": {"name": "tiny", "source": {"builtin": {"name": "other"}}}},
    "worker.image": {"worker": {"device": "cpu", "image": "mine:1"}},
    "worker.device": {"worker": {"device": "gpu"}},
    "worker.env": {"worker": {"device": "cpu", "env": [{"name": "A", "value": "1"}]}},
    "worker.quantization": {"worker": {"device": "cpu", "quantization": "int8"}},
    "worker.memoryUtilization": {"worker": {"device": "cpu", "memoryUtilization": 0.5}},
    "worker.cudaGraphs": {"worker": {"device": "gpu", "cudaGraphs": False}},
    "worker.maxBatchSize": {"worker": {"device": "cpu", "maxBatchSize": 4}},
    "intents.default": {"intents": {"default": "creative"}},
    "warmup.maxTokens": {"warmup": {"maxTokens": 8}},
    "terminationGracePeriodSeconds": {"terminationGracePeriodSeconds": 200},
    "drainSeconds": {"drainSeconds": 60},
    "apiKeySecretRef": {"apiKeySecretRef": {"name": "keys"}},
    "anchor": {
        "anchor": {
            "version": "v1",
            "digest": f"sha256:{'0' * 64}",
            "source": {"configMap": {"name": "facts"}},
        }
    },
}
LIVE: dict[str, dict[str, Any]] = {
    "replicas": {"replicas": 7},
    "autoscaling": {"autoscaling": {"maxReplicas": 3}},
    "disruption": {"disruption": {"maxUnavailable": 2}},
    "update": {"update": {"soak": "1h"}},
    "routing": {"routing": {"gateway": {"parentRefs": [{"name": "web"}]}}},
    "paused": {"paused": True},
}


@pytest.mark.parametrize("change", NEW_REVISION.values(), ids=NEW_REVISION)
def test_change_that_needs_other_pods_is_a_new_revision(change) -> None:
    assert revision_hash(spec(**change)) != revision_hash(spec())


@pytest.mark.parametrize("change", LIVE.values(), ids=LIVE)
def test_change_that_pods_need_not_know_is_none(change) -> None:
    assert revision_hash(spec(**change)) == revision_hash(spec())


def test_defaults_written_out_are_no_change() -> None:
    written = spec(
        intents={"default": "balanced", "allowed": ["deterministic", "balanced", "creative"]},
        warmup={"maxTokens": 16, "timeoutSeconds": 600, "settleRatio": 1.5},
        terminationGracePeriodSeconds=120,
        drainSeconds=90,
        worker={"device": "cpu", "maxBatchSize": 8, "dtype": "auto"},
    )

    assert revision_hash(written) == revision_hash(spec())
    assert revision_inputs(written) == revision_inputs(spec())


def test_hash_does_not_change_between_versions() -> None:
    """A hash that moved with the code would give every pool new pods at an upgrade of the operator."""
    assert revision_hash(spec()) == "adf4e888d9"


def test_every_field_is_either_live_or_part_of_the_revision() -> None:
    fields = {field.alias for field in PoolSpec.model_fields.values()}

    assert set(REVISION_FIELDS) | set(LIVE_FIELDS) == fields
    assert not set(REVISION_FIELDS) & set(LIVE_FIELDS)


def test_documentation_says_what_each_field_does() -> None:
    table = (repo_root() / "docs" / "revisions.md").read_text(encoding="utf-8")

    for field in REVISION_FIELDS:
        assert any(f"`{field}" in line and "new revision" in line for line in table.splitlines()), field
    for field in LIVE_FIELDS:
        assert any(f"`{field}" in line and "live" in line for line in table.splitlines()), field


def test_documentation_names_every_field_of_autoscaling() -> None:
    table = (repo_root() / "docs" / "revisions.md").read_text(encoding="utf-8")

    for field in AutoscalingSpec.model_fields.values():
        assert f"`autoscaling.{field.alias}" in table, field.alias
