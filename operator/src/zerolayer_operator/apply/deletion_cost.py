"""Writes down which of a pool's workers go first."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import POD
from zerolayer_operator.kube import CONFLICT, NOT_FOUND, ApiServerError, Kube
from zerolayer_operator.observe.state import ObservedPool

log = logging.getLogger(__name__)

Object = dict[str, Any]

_PASSING: Final = frozenset({CONFLICT, NOT_FOUND})
"""The pod is gone, or somebody has set a cost of their own since it was looked at."""


async def write_costs(kube: Kube, pool: ObservedPool, changes: Mapping[str, int | None]) -> None:
    """Gives a pool's pods their costs, one after the other; ``None`` takes the operator's own away.

    A cost that somebody else has set stands. A refusal is logged: without costs a pool shrinks all the same.

    Raises:
        ApiServerError: The API server can't be reached or fails.
    """
    uids = {pod.name: pod.uid for pod in pool.pods}
    for name, cost in changes.items():
        try:
            await kube.apply(POD, _marked(pool.namespace, name, uids[name], cost), force=False)
        except ApiServerError as error:
            if error.refused or error.by_webhook:
                place = {"namespace": pool.namespace, "pool": pool.name}
                log.warning("pod %s can't be given a deletion cost: %s", name, error.message, extra=place)
                return
            if error.status not in _PASSING:
                raise


def _marked(namespace: str, name: str, uid: str, cost: int | None) -> Object:
    """What is applied to a pod; by its UID no pod is made in place of one that is gone."""
    metadata: Object = {"name": name, "namespace": namespace, "uid": uid}
    if cost is not None:
        metadata["annotations"] = {names.ANNOTATION_DELETION_COST: str(cost)}
    return {"apiVersion": POD.api_version, "kind": POD.kind, "metadata": metadata}
