"""What a tuned window saves and what it costs, beside an autoscaler with a fixed one under the same load.

The other autoscaler is not there: its algorithm is replayed on what the real one is fed. What it would have
done is an estimate, since fewer replicas also change the load; what the pool itself did is counted.
"""

from dataclasses import dataclass, field, replace

from zerolayer_operator.decide.hpa_replay import (
    DEFAULT_WINDOW_S,
    Behavior,
    Bounds,
    Replay,
    per_pod_proposal,
)
from zerolayer_operator.decide.latency import UNWEIGHTED, Weight
from zerolayer_operator.observe.autoscaler import Metric

LONGEST_GAP_S = 60.0


@dataclass(frozen=True, slots=True)
class Terms:
    """What both autoscalers are bound by.

    Attributes:
        bounds: the author's, without a hold.
        behavior: how the pool may grow, and how it may shrink but for the window.
        cold_start_s: seconds from scheduled to ready.
    """

    bounds: Bounds
    behavior: Behavior
    cold_start_s: float


@dataclass(slots=True)
class Ledger:
    """One pool's account, from look to look.

    Attributes:
        saved_s: replica-seconds that a fixed window of 300 s would have cost more; negative if less.
        spent_s: replica-seconds of the pool itself.
        penalty_s: replica-seconds that weights have added to those; None before any weight was known.
        regrets: times the pool grew within one cold start after it had shrunk.
    """

    saved_s: float = 0.0
    spent_s: float = 0.0
    regrets: int = 0
    penalty_s: float | None = None
    _at: float | None = None
    _replicas: int = 0
    _fixed_replicas: int = 0
    _shrunk_at: float | None = None
    _replay: Replay = field(default_factory=Replay)

    def record(
        self, now: float, replicas: int, metric: Metric | None, terms: Terms, weight: Weight = UNWEIGHTED
    ) -> None:
        """Accounts for the time since the last look.

        Times further apart than `LONGEST_GAP_S` are left out: nobody looked, so nobody knows.

        Args:
            now: seconds on a clock that only goes forward.
            replicas: that the pool is asked to have now.
            metric: None where it can't be had; the other autoscaler keeps its size then, as it would.
            terms: in force since the last look.
            weight: of the time since the last look. Where it isn't known, nothing is taken for saved.
        """
        if self._at is None or now - self._at > LONGEST_GAP_S:
            self._restart(now, replicas)
            return
        seconds = now - self._at
        self.spent_s += self._replicas * seconds
        saved_s = (self._fixed_replicas - self._replicas) * seconds
        self.saved_s += saved_s if weight.proven else min(0.0, saved_s)
        if weight.penalty is not None:
            self.penalty_s = (self.penalty_s or 0.0) + self._replicas * seconds * (weight.penalty - 1)
        self._note_change(now, replicas, terms.cold_start_s)
        awake = self._replicas > 0 and replicas > 0
        self._at, self._replicas = now, replicas
        if awake:
            self._fixed_replicas = self._fixed(now, metric, terms)
        else:
            # An autoscaler leaves a pool of no workers alone: the other one goes to sleep and begins with it.
            self._fixed_replicas, self._replay = replicas, Replay()

    def _restart(self, now: float, replicas: int) -> None:
        self._at, self._replicas, self._fixed_replicas = now, replicas, replicas
        self._shrunk_at = None
        self._replay = Replay()

    def _note_change(self, now: float, replicas: int, cold_start_s: float) -> None:
        if replicas < self._replicas:
            self._shrunk_at = now
        elif (
            replicas > self._replicas
            and self._shrunk_at is not None
            and now - self._shrunk_at <= cold_start_s
        ):
            self.regrets += 1

    def _fixed(self, now: float, metric: Metric | None, terms: Terms) -> int:
        behavior = replace(terms.behavior, down=replace(terms.behavior.down, window_s=DEFAULT_WINDOW_S))
        proposal = None
        if metric is not None:
            proposal = per_pod_proposal(
                metric.usage_milli, metric.target_milli, self._fixed_replicas, behavior
            )
        return self._replay.sync(now, self._fixed_replicas, proposal, terms.bounds, behavior)
