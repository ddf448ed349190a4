"""Looks at a pool that is updated, again and again, while other things are done."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import pykube

from zerolayer_dev.demo.timeline import Moment
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.pools import Pool

INTERVAL_S = 1.0


class HTTPRoute(pykube.objects.NamespacedAPIObject):
    """A route of the Gateway API, as pykube reads it."""

    version = "gateway.networking.k8s.io/v1"
    endpoint = "httproutes"
    kind = "HTTPRoute"


class Watch:
    """Notes a pool's state every second for as long as the context lasts.

    Args:
        look: returns the state now.
    """

    def __init__(self, look: Callable[[], Moment]) -> None:
        self._look = look
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch")
        self.moments: list[Moment] = []

    def __enter__(self) -> Self:
        """Starts looking."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops looking."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.moments.append(self._look())
            self._stop.wait(INTERVAL_S)


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
