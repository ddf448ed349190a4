from copy import deepcopy
from typing import Any

import pytest

from zerolayer_dev.testing.crd_schema import errors

GOOD: dict[str, Any] = {
    "apiVersion": "zerolayer.dev/v1alpha1",
    "kind": "ZeroLayerPool",
    "metadata": {"name": "p"},
    "spec": {
        "model": {"name": "m", "source": {"builtin": {"name": "m"}}},
        "worker": {"device": "cpu", "resources": {"requests": {"cpu": "1", "memory": 5}}},
    },
}


def changed(path: str, value: object) -> dict[str, Any]:
    pool = deepcopy(GOOD)
    *parents, last = path.split(".")
    place = pool
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return pool


def test_good_pool_passes() -> None:
    assert errors(GOOD) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "Pool"),
        ("apiVersion", "v1"),
        ("spec.unknown", 1),
        ("spec.worker.gpu", 1),
        ("spec.replicas", -1),
        ("spec.replicas", "2"),
        ("spec.worker.device", "tpu"),
        ("spec.worker.tolerations", [{"keys": "a"}]),
        ("spec.worker.resources.requests", {"cpu": "much"}),
        ("spec.model.source", {"builtin": {"name": "m"}, "hostPath": {"path": "/m"}}),
        ("spec.drainSeconds", 119),
    ],
)
def test_bad_pool_is_refused(path: str, value: object) -> None:
    assert errors(changed(path, value))
