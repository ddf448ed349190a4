"""Kubernetes objects read into observed values."""

import json
from typing import Any

import pytest

from zerolayer_dev.testing.observed import wire_spec
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.observe.parse import (
    controlled_by,
    parse_deployment,
    parse_pod,
    parse_spec,
    parse_status,
)
from zerolayer_operator.observe.state import DeletionCost

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "w", "image": "live:1"}]}}


def body(annotations: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a-b-0123456789", "uid": "u", "generation": 2, "annotations": annotations or {}},
        "spec": {"replicas": 3, "template": TEMPLATE},
        "status": {"observedGeneration": 2, **status},
    }


def test_deployment_is_read() -> None:
    recorded = {"metadata": {}, "spec": {"containers": [{"name": "w"}]}}
    annotations = {
        "zerolayer.dev/pod-template": json.dumps(recorded),
        "zerolayer.dev/frozen-inputs": json.dumps({"image": "w:1", "modelCommit": "c"}),
    }
    found = parse_deployment(body(annotations, replicas=3, readyReplicas=2))

    assert (found.revision, found.size, found.existing, found.ready) == ("0123456789", 3, 3, 2)
    assert (found.frozen.image, found.frozen.model_commit) == ("w:1", "c")
    assert found.template == recorded
    assert found.has_ready(2)
    assert not found.has_ready(3)


def test_status_of_an_older_generation_proves_nothing() -> None:
    assert not parse_deployment(body(readyReplicas=3, observedGeneration=1)).has_ready(1)


@pytest.mark.parametrize("lost", ["", "no json", "[]", "{}"])
def test_lost_records_are_made_up_from_what_runs(lost: str) -> None:
    annotations = {"zerolayer.dev/frozen-inputs": lost, "zerolayer.dev/pod-template": lost}
    found = parse_deployment(body(annotations if lost else None))

    assert found.frozen.image == "live:1"
    assert found.template == TEMPLATE


def test_conditions_are_read() -> None:
    conditions = [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
        {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"},
    ]
    found = parse_deployment(body(conditions=conditions))

    assert found.deadline_exceeded
    assert found.failure == "exceeded quota"


@pytest.mark.parametrize(
    ("owners", "ours"),
    [
        ([], False),
        ([{"uid": "u", "controller": True}], True),
        ([{"uid": "u"}], False),
        ([{"uid": "v", "controller": True}], False),
    ],
)
def test_only_the_controller_owns(owners, ours) -> None:
    assert controlled_by({"metadata": {"ownerReferences": owners}}, "u") == ours


def test_spec_that_cannot_be_read_says_which_field() -> None:
    spec, why = parse_spec(wire_spec(worker={"device": "tpu"}))

    assert spec is None
    assert why is not None
    assert why.startswith("spec.worker.device:")


def test_status_that_cannot_be_read_counts_as_none() -> None:
    assert parse_status({"phase": "Unheard"}).phase is None
    assert parse_status(None).phase is None


@pytest.mark.parametrize(
    "time",
    [
        "0000-11-30T04:12:31Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "2026-11-30",
        "2026-11-30T04:12:31+99:99",
        "2026-11-30T04:12:31x5z",
    ],
)
@pytest.mark.parametrize(
    "field", ["lastChange", "startedAt", "stepStartedAt", "soakStartedAt", "switchedAt", "retainedUntil"]
)
def test_times_that_only_the_api_server_takes_for_some_make_a_status_unreadable(
    field: str, time: str
) -> None:
    assert parse_status(with_time(field, "2026-11-30T04:12:31Z")) != PoolStatus()
    assert parse_status(with_time(field, time)) == PoolStatus()


def with_time(field: str, time: str) -> dict[str, Any]:
    """A status with a time in one of its parts."""
    moment = "2026-11-30T04:12:31Z"
    parts = {
        "scaling": {"lastChange": moment},
        "update": {"step": "Retain", "fromRevision": "a", "toRevision": "b", "startedAt": moment},
        "failed": {
            "revision": "b",
            "settings": "s",
            "reason": "r",
            "message": "m",
            "failedAt": moment,
            "retainedUntil": moment,
        },
    }
    of = {"lastChange": "scaling", "retainedUntil": "failed"}.get(field, "update")
    return {"phase": "Ready", **parts, of: {**parts[of], field: time}}


COST = "controller.kubernetes.io/pod-deletion-cost"


def writer(manager: str, operation: str, *annotations: str) -> dict[str, Any]:
    fields = {f"f:{name}": {} for name in annotations}
    return {
        "manager": manager,
        "operation": operation,
        "fieldsV1": {"f:metadata": {"f:annotations": fields}},
    }


OURS = writer("zerolayer-operator", "Apply", COST)


@pytest.mark.parametrize(
    ("writers", "ours"),
    [
        ([OURS], True),
        ([OURS, writer("kubectl", "Update", "other")], True),
        ([writer("kubectl", "Update", COST)], False),
        ([OURS, writer("kubectl", "Apply", COST)], False),
        ([writer("zerolayer-operator", "Update", COST)], False),
        ([writer("kubelet", "Update")], False),
        ([{"manager": "kubelet", "operation": "Update"}], False),
        ([], False),
    ],
)
def test_deletion_cost_is_ours_where_nobody_else_wrote_it(writers: list[Any], ours: bool) -> None:
    metadata = {"name": "p", "uid": "u", "annotations": {COST: "-10"}, "managedFields": writers}
    found = parse_pod({"metadata": metadata})
    assert (found.uid, found.deletion_cost) == ("u", DeletionCost("-10", ours))


def test_deletion_cost_that_is_no_number_is_somebody_elses() -> None:
    metadata = {"name": "p", "annotations": {COST: "dear"}, "managedFields": [OURS]}
    assert parse_pod({"metadata": metadata}).deletion_cost == DeletionCost("dear", ours=False)


def test_pod_without_a_deletion_cost_has_none() -> None:
    assert parse_pod({"metadata": {"name": "p", "annotations": {"a": "b"}}}).deletion_cost is None
