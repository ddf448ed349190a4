"""Observed pools made up for tests of decisions and builders."""

import json
from datetime import UTC, datetime
from typing import Any

from zerolayer_operator.api import names
from zerolayer_operator.api.revision import FrozenInputs, revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import PoolStatus, RevisionStatus
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.observe.state import (
    ChildKey,
    ObservedDeployment,
    ObservedPod,
    ObservedPool,
    Problem,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DEFAULTS = Defaults(worker_image="worker:1")


def wire_spec(**fields: Any) -> dict[str, Any]:
    """A small CPU pool's spec as the API server would have it, with fields replaced; it has no canaries."""
    return {
        "model": {"name": "tiny", "source": {"builtin": {"name": "tiny"}}},
        "worker": {"device": "cpu"},
        "update": {"strategy": "Immediate"},
        **fields,
    }


def spec(**fields: Any) -> PoolSpec:
    """The same as a model."""
    return PoolSpec.model_validate_json(json.dumps(wire_spec(**fields)))


def serving(of: PoolSpec, *, warm: bool = True) -> PoolStatus:
    """The status of a pool that the revision of a spec serves."""
    name = revision_hash(of)
    recorded = RevisionStatus(name=name, image="worker:1", warm=warm)
    return PoolStatus(serving_revision=name, revisions=(recorded,))


def deployment(of: PoolSpec | str, size: int = 1, ready: int = 0, **fields: Any) -> ObservedDeployment:
    """A revision's Deployment, of a spec or of a revision by name."""
    revision = of if isinstance(of, str) else revision_hash(of)
    values: dict[str, Any] = {
        "revision": revision,
        "name": names.deployment_name("pool", revision),
        "uid": f"uid-{revision}",
        "size": size,
        "existing": size,
        "ready": ready,
        "frozen": FrozenInputs(image="worker:1"),
        "template": {"metadata": {}, "spec": {}},
    }
    return ObservedDeployment(**{**values, **fields})


def pod(
    of: PoolSpec | str, name: str = "pod-1", problem: Problem | None = None, **fields: Any
) -> ObservedPod:
    """A worker of a revision."""
    revision = of if isinstance(of, str) else revision_hash(of)
    return ObservedPod(name=name, revision=revision, problem=problem, **fields)


def pool(of: PoolSpec | None, **fields: Any) -> ObservedPool:
    """A pool; its children's live objects are made up from its Deployments where none are given."""
    deployments: tuple[ObservedDeployment, ...] = fields.get("deployments", ())
    children: dict[ChildKey, Any] = {
        ChildKey("Deployment", item.name): {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": item.name, "uid": item.uid},
            "spec": {"progressDeadlineSeconds": 720},
        }
        for item in deployments
    }
    values: dict[str, Any] = {
        "namespace": "default",
        "name": "pool",
        "uid": "uid-pool",
        "generation": 1,
        "spec": of,
        "children": children,
    }
    return ObservedPool(**{**values, **fields})
