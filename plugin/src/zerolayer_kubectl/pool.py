"""A pool and its update, as far as people are told of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from zerolayer_kubectl.fields import Object, number, part, parts, seconds, text, texts, time

PREPARE: Final = "Prepare"
SOAK: Final = "Soak"
AWAIT_PROMOTION: Final = "AwaitPromotion"
PROMOTE: Final = "Promote"
RETAIN: Final = "Retain"
ROLL_BACK: Final = "RollBack"

TRYING: Final = frozenset({SOAK, AWAIT_PROMOTION})
"""Steps at which a verdict is formed."""

READY: Final = "Ready"
UPDATING: Final = "Updating"

PROMOTED: Final = "Promoted"
REPLACED: Final = "Replaced"

LABEL_POOL: Final = "zerolayer.dev/pool"
LABEL_REVISION: Final = "zerolayer.dev/revision"
ANNOTATION_PROMOTE: Final = "zerolayer.dev/promote"
ANNOTATION_ROLL_BACK: Final = "zerolayer.dev/rollback"

MANUAL: Final = "Manual"

WISH_PROMOTE: Final = "promote"
WISH_ROLL_BACK: Final = "rollback"

NO_REQUESTS: Final = "NoRequests"
"""Reason of a verdict on a canary that gets none."""

SHARE_LIMIT: Final = 2
"""Without a gateway a canary gets no requests whose share would be more than so many times its weight."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a pool is updated, as `spec.update` says it; times in seconds, shares in percent.

    Attributes:
        golden: Whether a golden set is asked.
        traffic: Whether what users' requests meet is compared.
    """

    strategy: str
    canary_weight: int
    soak_s: int
    min_samples: int
    max_soak_s: int
    promotion: str
    blue_retention_s: int
    golden: bool
    traffic: bool


@dataclass(frozen=True, slots=True)
class Side:
    """The workers of one revision.

    Attributes:
        anchor: Version of its anchor; ``None`` where it has none or that is not told.
        size: How many workers it is to have; ``None`` where that is unknown.
        ready: How many can answer.
    """

    revision: str
    anchor: str | None = None
    size: int | None = None
    ready: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """What one check says of the canary."""

    name: str
    result: str
    message: str


@dataclass(frozen=True, slots=True)
class Update:
    """An update that is going on: from `old` to `new`.

    Attributes:
        standing: Wishes whose annotations were there before it began, so that they decide nothing.
    """

    step: str
    old: Side
    new: Side
    started_at: datetime | None
    step_started_at: datetime | None
    soak_started_at: datetime | None
    switched_at: datetime | None
    weight: int
    share: int | None
    raise_to: int | None
    verdict: str
    reason: str | None
    message: str | None
    samples: int
    checks: tuple[Check, ...]
    decided_by: str | None
    standing: frozenset[str]


@dataclass(frozen=True, slots=True)
class Failed:
    """A revision that the spec asks for and that failed."""

    revision: str
    reason: str
    message: str
    retained_until: datetime | None


@dataclass(frozen=True, slots=True)
class Finished:
    """An update that is over."""

    old: Side
    new: Side
    end: str
    reason: str
    message: str
    samples: int
    duration_s: int
    finished_at: datetime | None
    decided_by: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the pool."""

    holds: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool, its update, and what is known of the workers.

    Attributes:
        phase: ``None`` before any operator has looked at it.
        seen: Whether the operator has looked at the spec as it is now.
        asked_to_promote, asked_to_roll_back: What the annotations say, whether or not it counts (`wished`).
        sized: Whether the sizes of revisions could be read.
        body: The status as it was sent.
    """

    name: str
    namespace: str
    phase: str | None
    paused: bool
    seen: bool
    serving: Side | None
    settings: Settings
    update: Update | None
    failed: Failed | None
    history: tuple[Finished, ...]
    progressing: Condition | None
    problem: Condition | None
    asked_to_promote: str | None
    asked_to_roll_back: str | None
    sized: bool
    body: Object

    @property
    def last(self) -> Finished | None:
        """The update that ended last."""
        return self.history[0] if self.history else None

    @property
    def other(self) -> Side | None:
        """During an update: the revision that is not the serving one."""
        if self.update is None:
            return None
        served = self.serving is not None and self.serving.revision == self.update.new.revision
        return self.update.old if served else self.update.new

    @property
    def annotated(self) -> tuple[str, ...]:
        """Wishes whose annotations name the revision that is being introduced."""
        found = {WISH_PROMOTE: self.asked_to_promote, WISH_ROLL_BACK: self.asked_to_roll_back}
        new = self.update.new.revision if self.update is not None else None
        return tuple(wish for wish, revision in found.items() if revision is not None and revision == new)

    @property
    def wished(self) -> tuple[str, ...]:
        """Those of them that count: they were written since the update began."""
        standing = self.update.standing if self.update is not None else frozenset[str]()
        return tuple(wish for wish in self.annotated if wish not in standing)

    @property
    def needed(self) -> int:
        """Answers of the canary that a verdict needs: none where the golden set is all there is to go by."""
        settings, update = self.settings, self.update
        asked = update is None or update.weight > 0 or update.step not in TRYING
        return 0 if settings.golden and not (asked and settings.traffic) else settings.min_samples

    def soaked(self, now: datetime) -> timedelta | None:
        """How long the canary has soaked."""
        began = self.update.soak_started_at if self.update is not None else None
        return max(now - began, timedelta()) if began is not None else None


def read(body: Object, deployments: Iterable[Object] | None) -> Pool:
    """Reads a pool.

    Args:
        body: The pool as the API server sends it.
        deployments: Those of its revisions; ``None`` where they could not be read.
    """
    metadata, spec, status = part(body, "metadata"), part(body, "spec"), part(body, "status")
    sides = _Sides(status, deployments)
    serving = text(status, "servingRevision")
    conditions = {text(item, "type"): _condition(item) for item in parts(status, "conditions")}
    degraded = conditions.get("Degraded")
    annotations = part(metadata, "annotations")
    return Pool(
        name=text(metadata, "name") or "",
        namespace=text(metadata, "namespace") or "default",
        phase=text(status, "phase"),
        paused=spec.get("paused") is True,
        seen=number(status, "observedGeneration") == number(metadata, "generation"),
        serving=sides.of(serving) if serving is not None else None,
        settings=_settings(part(spec, "update")),
        update=_update(part(status, "update"), sides),
        failed=_failed(part(status, "failed")),
        history=tuple(_finished(item) for item in parts(status, "history")),
        progressing=conditions.get("Progressing"),
        problem=degraded if degraded is not None and degraded.holds else None,
        asked_to_promote=text(annotations, ANNOTATION_PROMOTE),
        asked_to_roll_back=text(annotations, ANNOTATION_ROLL_BACK),
        sized=deployments is not None,
        body=status,
    )


class _Sides:
    """The revisions that anything is known of."""

    def __init__(self, status: Object, deployments: Iterable[Object] | None) -> None:
        self._deployments = {
            text(part(item, "metadata", "labels"), LABEL_REVISION): item for item in deployments or ()
        }
        anchors = (part(status, "anchor", key) for key in ("active", "canary"))
        self._anchors = {text(item, "revision"): text(item, "version") for item in anchors}

    def of(self, revision: str) -> Side:
        """The workers of one revision."""
        found = self._deployments.get(revision)
        anchor = self._anchors.get(revision)
        if found is None:
            return Side(revision, anchor)
        ready = number(part(found, "status"), "readyReplicas") or 0
        return Side(revision, anchor, number(part(found, "spec"), "replicas"), ready)


def _settings(update: Object) -> Settings:
    soak = seconds(update, "soak", 24 * 3600)
    checks = part(update, "checks")
    return Settings(
        strategy=text(update, "strategy") or "Canary",
        canary_weight=number(update, "canaryWeight") or 10,
        soak_s=soak,
        min_samples=number(update, "minSamples") or 500,
        max_soak_s=seconds(update, "maxSoak", max(600, 3 * soak)),
        promotion=text(update, "promotion") or "Automatic",
        blue_retention_s=seconds(update, "blueRetention", 600),
        golden=bool(part(update, "golden")),
        traffic=any(checks.get(key) is not False for key in ("errorRate", "latency")),
    )


def _update(found: Object, sides: _Sides) -> Update | None:
    if not found:
        return None
    return Update(
        step=text(found, "step") or "",
        old=sides.of(text(found, "fromRevision") or ""),
        new=sides.of(text(found, "toRevision") or ""),
        started_at=time(found, "startedAt"),
        step_started_at=time(found, "stepStartedAt"),
        soak_started_at=time(found, "soakStartedAt"),
        switched_at=time(found, "switchedAt"),
        weight=number(found, "weight") or 0,
        share=number(found, "share"),
        raise_to=number(found, "raiseTo"),
        verdict=text(found, "verdict") or "Undecided",
        reason=text(found, "reason"),
        message=text(found, "message"),
        samples=number(found, "samples") or 0,
        checks=tuple(_check(item) for item in parts(found, "checks")),
        decided_by=text(found, "decidedBy"),
        standing=frozenset(texts(found, "standingWishes")),
    )


def _check(found: Object) -> Check:
    return Check(text(found, "name") or "", text(found, "result") or "", text(found, "message") or "")


def _failed(found: Object) -> Failed | None:
    if not found:
        return None
    return Failed(
        revision=text(found, "revision") or "",
        reason=text(found, "reason") or "",
        message=text(found, "message") or "",
        retained_until=time(found, "retainedUntil"),
    )


def _finished(found: Object) -> Finished:
    return Finished(
        old=Side(text(found, "fromRevision") or "", text(found, "fromAnchor")),
        new=Side(text(found, "toRevision") or "", text(found, "toAnchor")),
        end=text(found, "end") or "",
        reason=text(found, "reason") or "",
        message=text(found, "message") or "",
        samples=number(found, "samples") or 0,
        duration_s=number(found, "durationSeconds") or 0,
        finished_at=time(found, "finishedAt"),
        decided_by=text(found, "decidedBy") or "",
    )


def _condition(found: Object) -> Condition:
    return Condition(
        holds=text(found, "status") == "True",
        reason=text(found, "reason") or "",
        message=text(found, "message") or "",
    )
