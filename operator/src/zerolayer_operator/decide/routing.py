"""Whether gateways lead requests to a pool, and what keeps them from it."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import HTTP_ROUTE, SERVICE
from zerolayer_operator.api.routing import GatewaySpec
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.decide.traffic import Traffic
from zerolayer_operator.observe.access import section
from zerolayer_operator.observe.route import Answer, live_route
from zerolayer_operator.observe.state import ChildKey, ObservedPool, Problem

PATIENCE: Final = timedelta(seconds=30)
"""How long a gateway may take to answer, and to find what was made just before the route."""

_REMEDIES: Final = {
    "NotAllowedByListeners": "have a listener of the Gateway allow routes of this namespace (allowedRoutes)",
    "NoMatchingListenerHostname": "name hosts that one of its listeners serves in "
    "spec.routing.gateway.hostnames",
    "NoMatchingParent": "name a listener that the Gateway has in spec.routing.gateway.parentRefs",
}


def gateway_of(pool: ObservedPool, spec: PoolSpec) -> GatewaySpec | None:
    """The gateways that lead requests to a pool; ``None`` where it names none, or there can be no route."""
    return spec.routing.gateway if spec.routing is not None and pool.routable else None


def revisions_with_services(spec: PoolSpec, traffic: Traffic, revisions: Iterable[str]) -> tuple[str, ...]:
    """Those of a plan's revisions that have a Service of their own: with routing all, else in a canary."""
    # Whether or not there can be a route: one that was made before may go on.
    return tuple(revisions) if spec.routing is not None or traffic.canary is not None else ()


def unneeded_routing(
    pool: ObservedPool, spec: PoolSpec, traffic: Traffic, revisions: Iterable[str]
) -> Iterator[ChildKey]:
    """The route that nothing asks for any more, and Services of revisions and canaries that are over.

    A Service stays for as long as the route, as it was seen, leads requests to it: they would fail.
    """
    if gateway_of(pool, spec) is None:
        yield from (key for key in pool.children if key == ChildKey(HTTP_ROUTE.kind, pool.name))
    kept = {
        names.revision_service_name(pool.name, revision)
        for revision in revisions_with_services(spec, traffic, revisions)
    }
    if traffic.canary is not None:
        kept.add(names.canary_service_name(pool.name))
    route = live_route(pool)
    if route is not None:
        kept |= route.backends
    yield from (key for key in pool.children if _comes_and_goes(pool, key) and key.name not in kept)


def _comes_and_goes(pool: ObservedPool, key: ChildKey) -> bool:
    """Whether a child is the Service of a revision or of the canary; not what somebody copied from one."""
    revision = section(pool.children[key], "metadata", "labels").get(names.LABEL_REVISION)
    own = {names.canary_service_name(pool.name), names.revision_service_name(pool.name, str(revision))}
    return key.kind == SERVICE.kind and key.name in own


def routing_problems(pool: ObservedPool, spec: PoolSpec | None, now: datetime) -> Iterator[Problem]:
    """What keeps requests from coming to a pool as its spec asks."""
    if spec is None or spec.routing is None:
        return
    missing = _missing(pool)
    if missing is not None:
        yield missing
        return
    route = live_route(pool)
    if route is None:
        return
    for answer in route.answers:
        since = answer.since or route.applied_at
        if not answer.taken and since is not None and now - since > PATIENCE:
            yield _not_accepted(pool, answer)


def _missing(pool: ObservedPool) -> Problem | None:
    if pool.routable is None:
        return Problem(
            "GatewayNotEnabled",
            "spec.routing.gateway is not switched on in this cluster's operator; have its chart installed "
            "with gateway.enabled=true, or drop spec.routing",
        )
    if not pool.routable:
        return Problem(
            "GatewayMissing",
            "spec.routing.gateway needs the Gateway API, and this cluster does not define its HTTPRoutes "
            f"({HTTP_ROUTE.api_version}); install it with a gateway that implements it, or drop "
            "spec.routing",
        )
    return None


def _not_accepted(pool: ObservedPool, answer: Answer) -> Problem:
    if answer.taken is None:
        return Problem(
            "RouteNotAccepted",
            f"Gateway {answer.gateway} says nothing of HTTPRoute {pool.name}; check that there is such a "
            "Gateway and that its controller runs, or correct spec.routing.gateway.parentRefs",
        )
    quote = ": ".join(part for part in (answer.reason, answer.message) if part)
    remedy = _REMEDIES.get(answer.reason, f"`kubectl describe httproute {pool.name}` tells more")
    message = f"Gateway {answer.gateway} does not take HTTPRoute {pool.name}: {quote}; {remedy}"
    return Problem("RouteNotAccepted", message, quote=quote)
