"""The metadata that every child shares."""

from typing import Any

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import Kind
from zerolayer_operator.observe.state import ObservedPool

Object = dict[str, Any]

HTTP_PORT = 8000
OPS_PORT = 8081


def child(
    pool: ObservedPool,
    kind: Kind,
    name: str,
    spec: Object,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Object:
    """A child of a pool, as it is applied."""
    metadata: Object = {
        "name": name,
        "namespace": pool.namespace,
        "labels": {**names.owned_by_pool(pool.name), **(labels or {})},
        "ownerReferences": [owner_reference(pool)],
    }
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **spec}


def owner_reference(pool: ObservedPool) -> Object:
    """Makes the pool the controller, so that garbage collection deletes the child with it.

    Deleting a pool in the foreground does not wait for its children: to block that, the operator would need
    the right to change pools' finalizers, and it never touches those.
    """
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": pool.name,
        "uid": pool.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
