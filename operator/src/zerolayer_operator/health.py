"""Whether the operator is alive: a record of what last happened, and a verdict drawn from it.

The verdict rests on things that were *done*. A thread that answers while the resync loop is dead would
keep a useless pod running for ever.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Beat = Literal["lease", "resync", "reconcile"]
Role = Literal["starting", "standby", "leading"]

MISSED_BEATS = 3
"""How many intervals may pass without a beat before the operator counts as stuck."""

PATIENCE_S = 60.0
"""The shortest limit for the resync loop: a round's requests may each take as long as their timeout, and a
slow API server must not get the operator killed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer to a probe.

    Attributes:
        ok: Whether the probe passes.
        role: What the replica does at the moment.
        reason: One sentence for whoever reads the probe's answer.
        ages: Seconds since the last beat of each kind that has beaten.
    """

    ok: bool
    role: Role
    reason: str
    ages: Mapping[str, float] = field(default_factory=dict[str, float])


class Heartbeat:
    """Collects beats of the operator's loops and judges them.

    A leader is alive while both the Lease loop and the resync loop turn; a standby while the Lease loop
    does. A beat says that the loop came round, not that the API server answered: an API server that is
    away must not get the operator killed.

    Args:
        resync_interval_s: Seconds between two rounds of the resync loop.
        lease_interval_s: The longest time one round of the Lease loop may take.
        clock: A monotonic clock in seconds.
    """

    def __init__(
        self,
        resync_interval_s: float,
        lease_interval_s: float = 15,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits: dict[Beat, float] = {
            "lease": MISSED_BEATS * lease_interval_s,
            "resync": max(MISSED_BEATS * resync_interval_s, PATIENCE_S),
        }
        self._clock = clock
        self._last: dict[Beat, float] = {}
        self._role: Role = "starting"
        self._since = clock()

    @property
    def role(self) -> Role:
        """What the replica does at the moment."""
        return self._role

    def become(self, role: Role) -> None:
        """Changes the role; loops that only run in the new one get a full interval to beat first."""
        if role != self._role:
            self._role = role
            self._since = self._clock()

    def beat(self, kind: Beat) -> None:
        """Records that something just happened."""
        self._last[kind] = self._clock()

    def alive(self) -> Verdict:
        """Judges liveness: false where a loop that ought to turn stopped turning."""
        now = self._clock()
        expected: tuple[Beat, ...] = ("lease", "resync") if self._role == "leading" else ("lease",)
        for kind in expected:
            silent = now - max(self._last.get(kind, self._since), self._since)
            if silent > self._limits[kind]:
                reason = f"no {kind} for {silent:.0f} s, at most {self._limits[kind]:.0f} s are expected"
                return self._verdict(ok=False, reason=reason, now=now)
        return self._verdict(ok=True, reason="every loop turns", now=now)

    def ready(self) -> Verdict:
        """Judges readiness: a leader or a standby is ready, one that has yet to see the Lease is not."""
        if self._role == "starting":
            return self._verdict(ok=False, reason="the Lease was not reached yet", now=self._clock())
        return self.alive()

    def _verdict(self, *, ok: bool, reason: str, now: float) -> Verdict:
        ages = {kind: round(now - at, 3) for kind, at in self._last.items()}
        return Verdict(ok=ok, role=self._role, reason=reason, ages=ages)
