"""Services, the ServiceAccount, and the rules about who may reach workers."""

import contextlib
from typing import Final
from urllib.parse import urlsplit

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import NETWORK_POLICY, SERVICE, SERVICE_ACCOUNT
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.worker import WorkerSpec
from zerolayer_operator.build.meta import HTTP_PORT, OPS_PORT, Object, child
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.observe.state import ObservedPool

CLIENT_PORT = 80
DNS_PORT = 53
HTTPS_PORT = 443
HTTP_PORT_OF_WEB = 80


def port(number: int, protocol: str) -> Object:
    """A port of a NetworkPolicy."""
    return {"port": number, "protocol": protocol}


DNS_EGRESS: Final[Object] = {"ports": [port(DNS_PORT, "UDP"), port(DNS_PORT, "TCP")]}
"""What a pod has to reach to find names."""


def service(pool: ObservedPool, serving: str, *, both: bool = False) -> Object:
    """The Service that clients use: it selects one revision, so a switch is one write.

    Args:
        pool: The pool.
        serving: The revision.
        both: Whether it selects all revisions instead: without a gateway, by how many workers each one has,
            two of them share the requests.
    """
    selector = {names.LABEL_POOL: pool.name} if both else names.revision_selector(pool.name, serving)
    return _for_clients(pool, pool.name, selector)


def revision_service(pool: ObservedPool, revision: str) -> Object:
    """The Service of one revision, which a gateway leads requests to."""
    name = names.revision_service_name(pool.name, revision)
    labels = {names.LABEL_REVISION: revision}
    return _for_clients(pool, name, names.revision_selector(pool.name, revision), labels)


def canary_service(pool: ObservedPool, canary: str) -> Object:
    """The Service of the revision that is tried out, under a name that stays the same."""
    return _for_clients(
        pool, names.canary_service_name(pool.name), names.revision_selector(pool.name, canary)
    )


def _for_clients(
    pool: ObservedPool, name: str, selector: dict[str, str], labels: dict[str, str] | None = None
) -> Object:
    http = {"name": "http", "port": CLIENT_PORT, "targetPort": "http", "protocol": "TCP"}
    spec = {"type": "ClusterIP", "selector": selector, "ports": [http]}
    return child(pool, SERVICE, name, {"spec": spec}, labels=labels)


def metrics_service(pool: ObservedPool) -> Object:
    """The headless Service to scrape: every worker, also while it warms up."""
    spec = {
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {names.LABEL_POOL: pool.name},
        "ports": [{"name": "ops", "port": OPS_PORT, "targetPort": "ops", "protocol": "TCP"}],
    }
    return child(pool, SERVICE, names.metrics_service_name(pool.name), {"spec": spec})


def service_account(pool: ObservedPool) -> Object:
    """The workers' identity: workers never talk to the API server, so no token is mounted."""
    return child(pool, SERVICE_ACCOUNT, pool.name, {"automountServiceAccountToken": False})


def network_policy(pool: ObservedPool, spec: PoolSpec, defaults: Defaults) -> Object:
    """Requests from anywhere, operations from the operator and Prometheus, out only what fetching needs."""
    peers = sorted({defaults.operator_namespace, defaults.prometheus_namespace})
    policy = {
        "podSelector": {"matchLabels": {names.LABEL_POOL: pool.name}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"ports": [port(HTTP_PORT, "TCP")]},
            {"from": [_namespace(peer) for peer in peers], "ports": [port(OPS_PORT, "TCP")]},
        ],
        "egress": [DNS_EGRESS, *hub_egress(spec)],
    }
    return child(pool, NETWORK_POLICY, pool.name, {"spec": policy})


def hub_egress(spec: PoolSpec) -> list[Object]:
    """What a pod that fetches its model from the hub has to reach beside names."""
    if spec.model.source.hugging_face is None:
        return []
    return [{"ports": [port(_hub_port(spec.worker), "TCP")]}]


def _hub_port(worker: WorkerSpec) -> int:
    """The port of the model hub, or of the mirror that ``HF_ENDPOINT`` names."""
    endpoint = next((item.get("value") for item in worker.env or () if item["name"] == "HF_ENDPOINT"), None)
    # Splitting it and asking for its port both fail for what is no address.
    with contextlib.suppress(ValueError):
        address = urlsplit(endpoint or "")
        return address.port or (HTTP_PORT_OF_WEB if address.scheme == "http" else HTTPS_PORT)
    return HTTPS_PORT


def _namespace(name: str) -> Object:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
