"""Ways in which an update can go, and what a test does for it to go that way."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.update_pool import UpdatedPool

_PATIENCE_S: Final = 900

Change = Callable[[str], None]
"""Has the pool ask for a version of its anchor."""


@dataclass(frozen=True)
class Course:
    """A way in which an update goes.

    Attributes:
        name: of it.
        ends: how the updates end that there are then, the newest first.
        steer: begins the update, and has it go this way.
        update: settings of the pool's updates.
    """

    name: str
    ends: tuple[str, ...]
    steer: Callable[[UpdatedPool, Change], None]
    update: dict[str, str] = field(default_factory=dict[str, str])

    def go(self, pool: UpdatedPool, change: Change) -> None:
        """Goes all the way, from version v1 to v2 or beyond, and waits for the end."""
        self.steer(pool, change)
        pool.wait_over(len(self.ends), seconds=_PATIENCE_S)


def _promoted(pool: UpdatedPool, change: Change) -> None:
    change("v2")
    pool.annotate("promote", _soaking(pool)["toRevision"])


def _left_early(pool: UpdatedPool, change: Change) -> None:
    change("v2")
    pool.annotate("rollback", _soaking(pool)["toRevision"])


def _left_late(pool: UpdatedPool, change: Change) -> None:
    _promoted(pool, change)
    pool.annotate("rollback", pool.wait_step("Retain", seconds=_PATIENCE_S)["toRevision"])


def _replaced(pool: UpdatedPool, change: Change) -> None:
    change("v2")
    first = _soaking(pool)["toRevision"]
    change("v3")
    pool.annotate("promote", _soaking(pool, after=first)["toRevision"])


def _soaking(pool: UpdatedPool, after: str = "") -> Manifest:
    """The update, once it soaks and is another one than before."""
    return pool.wait(
        lambda: pool.update,
        lambda seen: seen.get("step") == "Soak" and seen["toRevision"] != after,
        what=f"a canary after {after or 'none'}",
        seconds=_PATIENCE_S,
    )


_SOON: Final = {"blueRetention": "2s", "failedRetention": "2s"}

COURSES: Final = (
    Course("promoted", ("Promoted",), _promoted, _SOON),
    Course("rolled back before the switch", ("RolledBack",), _left_early, _SOON),
    # Long enough to be asked for in time.
    Course("rolled back after the switch", ("RolledBack",), _left_late, _SOON | {"blueRetention": "1h"}),
    Course("replaced", ("Promoted", "Replaced"), _replaced, _SOON),
)
