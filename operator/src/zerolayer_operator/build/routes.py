"""The HTTPRoute, for clusters with the Gateway API."""

from collections.abc import Iterator, Mapping
from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import HTTP_ROUTE
from zerolayer_operator.api.routing import GatewaySpec
from zerolayer_operator.build.meta import Object, child
from zerolayer_operator.build.services import CLIENT_PORT
from zerolayer_operator.decide.traffic import Traffic
from zerolayer_operator.observe.state import ObservedPool

_ALL: Final = 100


def http_route(pool: ObservedPool, gateway: GatewaySpec, traffic: Traffic) -> Object:
    """The route: requests that name a revision go to that one, the others by weight.

    Its backends are the Services of single revisions, so that one write moves all requests at once.
    """
    spec: Object = {
        "parentRefs": [reference.to_wire() for reference in gateway.parent_refs],
        "rules": [*_named(pool.name, traffic), _rule(pool.name, _shares(traffic))],
    }
    if gateway.hostnames:
        spec["hostnames"] = list(gateway.hostnames)
    return child(pool, HTTP_ROUTE, pool.name, {"spec": spec})


def _named(pool: str, traffic: Traffic) -> Iterator[Object]:
    """Rules for requests that name what they want.

    Of rules that match equally well the first one counts. Revisions come first: a request that names a
    revision and a version is a conversation with that revision, whatever else its client repeats.
    """
    for item in traffic.pinned:
        yield _rule(pool, {item.revision: _ALL}, (names.HEADER_REVISION, item.revision))
    for item in traffic.pinned:
        if item.anchor is not None:
            yield _rule(pool, {item.revision: _ALL}, (names.HEADER_ANCHOR, item.anchor))


def _shares(traffic: Traffic) -> Mapping[str, int]:
    """Percent of the requests that name nothing, by revision; one that gets none of them is left out.

    A gateway answers with an error for a backend that it can't find, whatever its weight.
    """
    if traffic.canary is None:
        return {traffic.serving: _ALL}
    shares = {traffic.serving: _ALL - traffic.weight, traffic.canary: traffic.weight}
    return {revision: share for revision, share in shares.items() if share}


def _rule(pool: str, shares: Mapping[str, int], header: tuple[str, str] | None = None) -> Object:
    """A rule that takes all requests, or those with a header.

    Without a limit to how long a request may take: a long answer is no hanging one, and workers themselves
    end a stream that must end.
    """
    rule: Object = {
        "backendRefs": [
            {
                "kind": "Service",
                "name": names.revision_service_name(pool, revision),
                "port": CLIENT_PORT,
                "weight": share,
            }
            for revision, share in shares.items()
        ],
        "timeouts": {"request": "0s"},
    }
    if header is not None:
        name, value = header
        rule["matches"] = [{"headers": [{"type": "Exact", "name": name, "value": value}]}]
    return rule
