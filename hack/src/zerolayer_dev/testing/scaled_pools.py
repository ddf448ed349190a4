"""A pool that a real autoscaler sizes, and what can be seen of it from outside."""

import json
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.metrics_api import Answer
from zerolayer_dev.testing.pools import Pool

CONTROLLER_WINDOW_S = 12
"""Delay of an autoscaler that says nothing of it, in seconds, in clusters of tests of these pools."""
TARGET = 70
"""Per cent of its capacity that a worker is to have in use: a pool's own default."""


def load_for(workers: float) -> Answer:
    """The metric of a load that so many workers would carry at their target."""
    return Answer((round(1000 * TARGET * workers),))


def asks(workers: float) -> Callable[..., Answer]:
    """The same as a load that stays as it is, whoever asks."""
    return lambda *_asked: load_for(workers)


class ScaledPool(Pool):
    """One pool with an autoscaler of its own."""

    @property
    def size(self) -> int:
        """Workers that it is asked to have."""
        return sum(item["spec"]["replicas"] for item in self.deployments().values())

    @property
    def autoscaler(self) -> Manifest:
        """Its HorizontalPodAutoscaler; empty where there is none."""
        said = self.kubectl("-n", self.namespace, "get", "hpa", self.name, "-o", "json", "--ignore-not-found")
        return json.loads(said) if said.strip() else {}

    @property
    def scaling(self) -> Manifest:
        """The part of its status about autoscaling."""
        return self.status.get("scaling", {})

    def patch_autoscaler(self, *changes: dict[str, Any]) -> None:
        """Changes the autoscaler by hand, by JSON patch."""
        patch = json.dumps(changes)
        self.kubectl("-n", self.namespace, "patch", "hpa", self.name, "--type=json", f"--patch={patch}")

    def scale_by_hand(self, size: int) -> None:
        """Sets the size as people do."""
        (deployment,) = self.deployments().values()
        name = deployment["metadata"]["name"]
        self.kubectl("-n", self.namespace, "scale", f"deployment/{name}", f"--replicas={size}")

    def wait_size(self, wanted: int, *, seconds: float = 60) -> None:
        """Waits until it is asked to have so many workers."""
        self.wait(
            lambda: self.size,
            lambda seen: seen == wanted,
            what=f"{wanted} workers asked for",
            seconds=seconds,
        )

    def wait_workers(self, wanted: int, *, seconds: float = 60) -> None:
        """Waits until so many workers are ready."""
        self.wait(
            lambda: self.status.get("readyReplicas"),
            lambda seen: seen == wanted,
            what=f"{wanted} ready workers",
            seconds=seconds,
        )

    def wait_scaling(self, until: Callable[[Manifest], bool], *, what: str, seconds: float = 60) -> Manifest:
        """Waits for what its status says about autoscaling, and returns that."""
        return self.wait(lambda: self.scaling, until, what=f"{what} in its status", seconds=seconds)

    def sizes(self, seconds: float) -> set[int]:
        """All sizes that are seen within some time."""
        seen: set[int] = set()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            seen.add(self.size)
            time.sleep(0.2)
        return seen

    def tuned(self) -> list[str]:
        """What was told about its autoscaling in Events."""
        return [event["message"] for event in self.events() if event["reason"] == "ScalingTuned"]

    def warnings(self) -> list[str]:
        """What was told in warnings."""
        return [event["message"] for event in self.events() if event["type"] == "Warning"]

    def resized(self, audit: AuditLog, user: str, since: int = 0) -> int:
        """How often a user has set its size; what the API server refused doesn't count."""
        return sum(
            call.namespace == self.namespace
            and call.permission.resource == "deployments/scale"
            and call.permission.verb in {"update", "patch"}
            and call.code == HTTPStatus.OK
            for call in audit.calls(user=user, since=since)
        )
