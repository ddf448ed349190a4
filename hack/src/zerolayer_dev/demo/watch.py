"""Looks at a pool that is updated, again and again, while other things are done."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pykube

from zerolayer_dev.demo.timeline import Moment
from zerolayer_dev.testing.background import repeated
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.pools import Pool

INTERVAL_S = 1.0


class HTTPRoute(pykube.objects.NamespacedAPIObject):
    """A route of the Gateway API, as pykube reads it."""

    version = "gateway.networking.k8s.io/v1"
    endpoint = "httproutes"
    kind = "HTTPRoute"


@contextmanager
def watched(look: Callable[[], Moment]) -> Iterator[list[Moment]]:
    """Notes a pool's state every second for as long as the block lasts.

    Args:
        look: returns the state now.
    """
    moments: list[Moment] = []
    with repeated(lambda: moments.append(look()), every_s=INTERVAL_S, name="watch"):
        yield moments


def look(pool: Pool) -> Moment:
    """A pool's state now."""
    found = HTTPRoute.objects(pool.api, namespace=pool.namespace).get_or_none(name=pool.name)
    return moment(time.monotonic(), pool.status, pool.deployments(), found.obj if found else {})


def moment(at: float, status: Manifest, deployments: dict[str, Manifest], route: Manifest) -> Moment:
    """What a timeline keeps of a pool's objects."""
    update = status.get("update", {})
    return Moment(
        at=at,
        step=update.get("step", ""),
        green=update.get("toRevision", ""),
        verdict=update.get("verdict", ""),
        reason=update.get("reason", ""),
        serving=status.get("servingRevision", ""),
        weights=_weights(route),
        ready={name: item.get("status", {}).get("readyReplicas", 0) for name, item in deployments.items()},
    )


def _weights(route: Manifest) -> dict[str, int]:
    """Weights of the rule for requests that name nothing, which is the last, by revision."""
    rules = route.get("spec", {}).get("rules", ())
    backends = rules[-1]["backendRefs"] if rules else ()
    return {item["name"].rpartition("-")[2]: item["weight"] for item in backends}
