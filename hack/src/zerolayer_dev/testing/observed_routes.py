"""Observed pools that gateways lead requests to, made up for tests, and what is built of them."""

from typing import Any

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, spec
from zerolayer_operator.api.routing import GatewaySpec
from zerolayer_operator.build.children import children
from zerolayer_operator.build.routes import http_route
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.decide.traffic import Traffic
from zerolayer_operator.observe.state import ChildKey, ObservedPool

ROUTE = ChildKey("HTTPRoute", "pool")
MADE_AT = "2026-01-02T03:00:00Z"


def routing(**fields: Any) -> dict[str, Any]:
    """A spec's routing through the Gateway `gate`."""
    return {"gateway": {"parentRefs": [{"name": "gate"}], **fields}}


def gateway(**fields: Any) -> GatewaySpec:
    """The same as a model."""
    return GatewaySpec.model_validate(routing(**fields)["gateway"], strict=False)


def routed(*revisions: str, **fields: Any) -> ObservedPool:
    """A pool that names a gateway and has these revisions."""
    deployments = tuple(deployment(revision, ready=1) for revision in revisions)
    return pool(spec(routing=routing()), **{"deployments": deployments, "routable": True, **fields})


def live(of: ObservedPool, traffic: Traffic, *parents: dict[str, Any], **metadata: Any) -> ObservedPool:
    """The same pool with its route for this traffic, of which gateways say this."""
    body = http_route(of, gateway(), traffic)
    body["metadata"] |= {"uid": "uid-route", "generation": 2, "creationTimestamp": MADE_AT, **metadata}
    body["status"] = {"parents": list(parents)}
    changed = {**of.children, ROUTE: body}
    return pool(of.spec, deployments=of.deployments, routable=of.routable, status=of.status, children=changed)


def parent(accepted: str = "True", resolved: str = "True", generation: int = 2, **fields: Any) -> Any:
    """What a gateway says of a route; `reason` and `message` are those of what is not so."""
    told = {"reason": "Fine", "message": "", **fields}
    conditions = [
        {
            "type": kind,
            "status": status,
            "observedGeneration": generation,
            "lastTransitionTime": MADE_AT,
            **{key: told[key] for key in ("reason", "message")},
        }
        for kind, status in (("Accepted", accepted), ("ResolvedRefs", resolved))
    ]
    return {"parentRef": {"name": "gate", **fields.get("ref", {})}, "conditions": conditions}


def built(of: ObservedPool) -> dict[tuple[str, str], dict[str, Any]]:
    """The children that are made of a pool, in their order."""
    made = children(of, plan(of, DEFAULTS, NOW), DEFAULTS)
    return {(body["kind"], body["metadata"]["name"]): body for body in made}
