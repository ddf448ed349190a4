"""How pools and their autoscalers are set, second by second, while a test goes on."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pykube

from zerolayer_dev.testing.kube import Manifest, objects
from zerolayer_dev.testing.pools import POOL_LABEL, ZeroLayerPool

_PACE_S: Final = 1.0
_WINDOW: Final = ("spec", "behavior", "scaleDown", "stabilizationWindowSeconds")
_FLOOR: Final = ("spec", "minReplicas")


@dataclass(frozen=True, slots=True)
class Seen:
    """A pool at one instant.

    Attributes:
        at: In seconds of the monotonic clock.
        replicas: That its Deployments are asked to have.
        window_s: Of its autoscaler; ``None`` where there is none.
        floor: The fewest that the autoscaler leaves.
        status: The pool's own, with what it says of its autoscaling.
    """

    at: float
    replicas: int
    window_s: int | None
    floor: int | None
    status: Manifest

    @property
    def scaling(self) -> Manifest:
        """What the status says of it."""
        return self.status.get("scaling") or {}

    @property
    def tuned(self) -> Manifest:
        """The condition that says whether the load is known."""
        conditions = self.status.get("conditions", ())
        return next((item for item in conditions if item["type"] == "ScalingTuned"), {})


@dataclass(slots=True)
class Trace:
    """What was seen of the pools of a namespace, by their names."""

    api: pykube.HTTPClient
    namespace: str
    seen: dict[str, list[Seen]] = field(default_factory=dict[str, list[Seen]])

    def look(self) -> None:
        """Looks at all of them."""
        found = {kind: self._found(kind) for kind in (ZeroLayerPool, pykube.Deployment)}
        autoscalers = {item["metadata"]["name"]: item for item in self._found(pykube.HorizontalPodAutoscaler)}
        at = time.monotonic()
        for pool in found[ZeroLayerPool]:
            name = pool["metadata"]["name"]
            own = [item for item in found[pykube.Deployment] if _pool_of(item) == name]
            autoscaler = autoscalers.get(name, {})
            replicas = sum(item["spec"]["replicas"] for item in own)
            window, floor = _at(autoscaler, _WINDOW), _at(autoscaler, _FLOOR)
            seen = Seen(at, replicas, window, floor, pool.get("status", {}))
            self.seen.setdefault(name, []).append(seen)

    @contextmanager
    def following(self) -> Iterator["Trace"]:
        """Looks at once, and once a second while the context lasts."""
        ended = threading.Event()

        def follow() -> None:
            while not ended.wait(_PACE_S):
                self.look()

        self.look()
        thread = threading.Thread(target=follow, name="trace")
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()

    def last(self, pool: str) -> Seen:
        """What was seen of a pool last."""
        return self.seen[pool][-1]

    def changes(self, pool: str, of: Callable[[Seen], Any], since: float = 0.0) -> list[tuple[float, Any]]:
        """When something about a pool took which value, its first one included."""
        changes: list[tuple[float, Any]] = []
        for seen in self.seen[pool]:
            if seen.at >= since and (not changes or of(seen) != changes[-1][1]):
                changes.append((seen.at, of(seen)))
        return changes

    def _found(self, kind: type[pykube.objects.APIObject]) -> list[Manifest]:
        return objects(self.api, kind, namespace=self.namespace)


def _pool_of(item: Manifest) -> str | None:
    return item["metadata"].get("labels", {}).get(POOL_LABEL)


def _at(body: Manifest, path: tuple[str, ...]) -> Any:
    value: Any = body
    for part in path:
        value = (value or {}).get(part)
    return value
