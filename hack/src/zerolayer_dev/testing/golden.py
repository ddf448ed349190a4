"""Golden sets' reports, Jobs and pods made up for tests."""

import json
from typing import Any

from zerolayer_operator.api import names

SET_DIGEST = f"sha256:{'a' * 64}"


def report(**fields: Any) -> dict[str, Any]:
    """A report on ten questions, of which eight have an expected answer, in which nothing is wrong."""
    side = {"asked": 10, "hits": 8, "errors": 0, "repeatsDiffer": 0}
    values: dict[str, Any] = {
        "set": SET_DIGEST,
        "items": 10,
        "expected": 8,
        "blue": side,
        "green": side,
        "similarity": {"kept": 2, "compared": 2, "least": 0.99, "mean": 0.995, "threshold": 0.97},
        "failing": [],
        "failingCount": 0,
    }
    changed = {
        name: {**values[name], **change} if isinstance(values.get(name), dict) else change
        for name, change in fields.items()
    }
    return {**values, **changed}


def job(name: str, run: str, condition: tuple[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """A Job as the API server has it, with one condition: its type and message."""
    told = [] if condition is None else [{"type": condition[0], "status": "True", "message": condition[1]}]
    labels = {names.LABEL_POOL: "pool", names.LABEL_GOLDEN: "pool", names.LABEL_REVISION: name.split("-")[-2]}
    own = {
        "name": name,
        "uid": "job-uid",
        "labels": labels,
        "annotations": {names.ANNOTATION_GOLDEN_RUN: run},
    }
    return {"kind": "Job", "metadata": {**own, **metadata}, "status": {"conditions": told}}


def pod(
    message: object = None, code: int | None = 0, owner: str = "job-uid", **status: Any
) -> dict[str, Any]:
    """A Job's pod, whose container has ended with a message, or runs if there is no exit code."""
    state: dict[str, Any] = {"running": {}}
    if code is not None:
        text = message if isinstance(message, str) else json.dumps(message)
        state = {
            "terminated": {"exitCode": code, "message": text, "finishedAt": "2026-01-02T03:00:00Z"},
        }
    containers = [{"name": names.GOLDEN_NAME, "state": state}]
    return {
        "kind": "Pod",
        "metadata": {
            "name": "pod",
            "labels": names.golden_labels("pool"),
            "ownerReferences": [{"kind": "Job", "uid": owner}],
        },
        "status": {"containerStatuses": containers, **status},
    }
