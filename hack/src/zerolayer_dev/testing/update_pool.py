"""A pool whose revision is replaced, and what can be seen of it from outside."""

import time
from collections.abc import Callable
from typing import Any

from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.scaled_pools import ScaledPool


class UpdatedPool(ScaledPool):
    """One pool that is updated."""

    @property
    def update(self) -> Manifest:
        """The update that is going on; empty while there is none."""
        return self.status.get("update", {})

    @property
    def history(self) -> list[Manifest]:
        """The updates that are over, the newest first."""
        return self.status.get("history", [])

    def wait_step(self, step: str, *, seconds: float = 60) -> Manifest:
        """Waits until an update is at a step, and returns it."""
        return self.wait(
            lambda: self.update, lambda seen: seen.get("step") == step, what=f"step {step}", seconds=seconds
        )

    def wait_over(self, count: int = 1, *, seconds: float = 120) -> Manifest:
        """Waits until so many updates are over and none goes on, and returns the last one's entry."""

        def over(status: Manifest) -> bool:
            return len(status.get("history", ())) == count and "update" not in status

        return self.wait(lambda: self.status, over, what="the end", seconds=seconds)["history"][0]

    def annotate(self, what: str, revision: str) -> None:
        """Asks for a promotion or a roll-back, as people do."""
        self.kubectl(
            "-n",
            self.namespace,
            "annotate",
            "--overwrite",
            "zlp",
            self.name,
            f"zerolayer.dev/{what}={revision}",
        )

    def sizes_of(self) -> dict[str, int]:
        """The sizes that its revisions are asked to have."""
        return {revision: item["spec"]["replicas"] for revision, item in self.deployments().items()}

    def watch_sizes(self, until: Callable[[], Any]) -> list[dict[str, int]]:
        """All sizes that are seen until something is true."""
        seen = [self.sizes_of()]
        while not until():
            now = self.sizes_of()
            if now != seen[-1]:
                seen.append(now)
            time.sleep(0.1)
        return seen
