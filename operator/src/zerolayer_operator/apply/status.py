"""Writes the status, and only where it says something new."""

from collections.abc import Mapping
from typing import Any

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import POOL
from zerolayer_operator.api.status import ConditionType, PoolStatus
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.state import ObservedPool

_OUR_CONDITIONS = frozenset(kind.value for kind in ConditionType)


async def write_status(kube: Kube, pool: ObservedPool, status: PoolStatus) -> bool:
    """Write the status by server-side apply where it changed; whether it did.

    Raises:
        ApiServerError: The API server refuses or can't be reached.
    """
    wire = status.to_wire()
    if wire == _ours(pool.raw_status):
        return False
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        # The UID keeps the status of a deleted pool off another one that took its name.
        "metadata": {"name": pool.name, "namespace": pool.namespace, "uid": pool.uid},
        "status": wire,
    }
    await kube.apply(POOL, body, subresource="status")
    return True


def _ours(status: Mapping[str, Any]) -> dict[str, Any]:
    """The status without others' conditions: an apply leaves them, so they are no difference."""
    if "conditions" not in status:
        return dict(status)
    ours = [item for item in status["conditions"] if item.get("type") in _OUR_CONDITIONS]
    return {**status, "conditions": ours}
