"""One policy sizing one pool under one workload."""

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from zerolayer_bench.autoscaling.queueing import Queue, Seen
from zerolayer_bench.autoscaling.traces import SLOTS_PER_POD, Floats, Workload

LATE_S = 1.0
FIRST_REPLICAS = 10


class Policy(Protocol):
    """Sizes a pool."""

    @property
    def period_s(self) -> int:
        """Whole seconds between two decisions."""
        ...

    def resize(self, now: int, seen: Seen, replicas: int, ready: int) -> int:
        """Returns the replicas that the pool is to have from now on.

        Args:
            now: seconds since the trace began.
            seen: what the workers counted since the last call.
            replicas: that the pool has, those that still start included.
            ready: those of them that serve.
        """
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy cost and what it was worth.

    Attributes:
        replica_hours: of all replicas from their creation to their removal.
        overload_share: of the time, with more load offered than the ready pods have slots.
        late_share: of the requests, that waited more than a second before their prefill began.
        p99_wait_s: 99th percentile of that wait.
        regrets: scale-ups within one cold start after a scale-down.
    """

    replica_hours: float
    overload_share: float
    late_share: float
    p99_wait_s: float
    regrets: int


@dataclass(slots=True)
class Pods:
    """A pool's pods: those that serve, and those that start."""

    cold_start_s: int
    ready: int
    regrets: int = 0
    _starting: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])
    _shrunk_at: float = -np.inf

    @property
    def replicas(self) -> int:
        """All of them."""
        return self.ready + sum(count for _, count in self._starting)

    def wake(self, now: int) -> None:
        """Lets those serve whose cold start is over."""
        while self._starting and self._starting[0][0] <= now:
            self.ready += self._starting.popleft()[1]

    def resize(self, now: int, replicas: int) -> None:
        """Creates pods, or removes them: those that don't serve yet first, as Kubernetes does."""
        missing = replicas - self.replicas
        if missing > 0:
            self.regrets += now - self._shrunk_at <= self.cold_start_s
            self._starting.append((now + self.cold_start_s, missing))
        elif missing < 0:
            self._shrunk_at = now
            self._remove(-missing)

    def _remove(self, surplus: int) -> None:
        while surplus and self._starting:
            wakes, count = self._starting.pop()
            if count > surplus:
                self._starting.append((wakes, count - surplus))
            surplus = max(0, surplus - count)
        self.ready -= surplus


def simulate(workload: Workload, offered: Floats, policy: Policy, cold_start_s: int) -> Outcome:
    """Runs a workload through a pool that a policy sizes.

    Args:
        workload: the requests.
        offered: their offered load in slots at each second; shape `[seconds]`.
        policy: a fresh one; it keeps its memory.
        cold_start_s: whole seconds from a pod's creation until it serves.
    """
    queue, pods = Queue(workload), Pods(cold_start_s, FIRST_REPLICAS)
    period = policy.period_s
    steps = workload.duration_s // period
    ready, replicas = np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    for step in range(steps):
        pods.wake(step * period)
        ready[step], replicas[step] = pods.ready, pods.replicas
        seen = queue.advance(period, pods.ready * SLOTS_PER_POD)
        now = (step + 1) * period
        pods.resize(now, policy.resize(now, seen, pods.replicas, pods.ready))
    served = np.repeat(ready, period) * SLOTS_PER_POD
    return Outcome(
        replica_hours=float(replicas.sum()) * period / 3600,
        overload_share=float(np.mean(offered[: len(served)] > served)),
        late_share=float(np.mean(queue.waits > LATE_S)),
        p99_wait_s=float(np.quantile(queue.waits, 0.99, method="higher")),
        regrets=pods.regrets,
    )
