"""Writes the status, and only where it says something new."""

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import POOL
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.state import ObservedPool


async def write_status(kube: Kube, pool: ObservedPool, status: PoolStatus) -> bool:
    """Write the status by server-side apply where it changed; whether it did.

    Raises:
        ApiServerError: The API server refuses or can't be reached.
    """
    wire = status.to_wire()
    if wire == pool.raw_status:
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
