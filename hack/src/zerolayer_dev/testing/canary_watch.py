"""A watched canary in memory: its workers are asked when the test says so, and the clock is the test's."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from zerolayer_dev.testing.observed import NOW, deployment, pod, pool, serving, spec
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.update_status import Step, UpdateStatus
from zerolayer_operator.assessing import TOLD_S, Assessor
from zerolayer_operator.decide.update_facts import Assessment
from zerolayer_operator.decide.wire import wire_time
from zerolayer_operator.observe.state import ObservedPool
from zerolayer_operator.observe.worker_metrics import WorkerMetricsError
from zerolayer_operator.workqueue import PoolKey

ERRORS_ONLY = {"soak": "10m", "minSamples": 30, "checks": {"latency": False, "consistency": False}}
KEY = PoolKey("default", "pool")
OLD = spec(update=ERRORS_ONLY)
NEW = spec(update=ERRORS_ONLY, drainSeconds=60)
BLUE, GREEN = revision_hash(OLD), revision_hash(NEW)


def record(step: Step = Step.SOAK, **changes: Any) -> UpdateStatus:
    """An update that has a canary."""
    values: dict[str, Any] = {
        "step": step,
        "from_revision": BLUE,
        "to_revision": GREEN,
        "started_at": wire_time(NOW),
        "weight": 10,
    }
    return UpdateStatus(**{**values, **changes})


def worker(of: Any, address: str, **changes: Any) -> Any:
    """A pod that answers at an address."""
    return pod(of, f"pod-{address}", uid=f"uid-{address}", **{"ip": address, "ready_at": NOW, **changes})


WORKERS = (worker(OLD, "b1"), worker(OLD, "b2"), worker(NEW, "g1"))


def canary(
    update: UpdateStatus | None = None, *, ready: int = 1, green: int = 1, **fields: Any
) -> ObservedPool:
    """A pool with two workers of the revision that serves, and one of a canary."""
    status = serving(OLD).model_copy(update={"update": update or record()})
    sides = (deployment(OLD, 2, 2), deployment(NEW, green, ready))
    return pool(**{"of": NEW, "status": status, "deployments": sides, "pods": WORKERS, **fields})


class Workers:
    """Workers that are asked when the test says so, and tell how many requests they have answered."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[Mapping[str, int | None] | Exception] = asyncio.Queue()
        self.asked: list[list[str]] = []
        self.closed = False

    async def ask(self, addresses: Iterable[str], read: Callable[[str], Any]) -> dict[str, Any]:
        """Answer for those workers, once the test has said what."""
        wanted = list(addresses)
        self.asked.append(wanted)
        told = await self.answers.get()
        if isinstance(told, Exception):
            raise told
        return {address: self._tell(told[address], read) for address in wanted}

    @staticmethod
    def _tell(answered: int | None, read: Callable[[str], Any]) -> Any:
        if answered is None:
            return WorkerMetricsError("it gives no answer")
        return read(f'zero_layer_answers_total{{outcome="ok"}} {answered}\n')

    async def close(self) -> None:
        """Be asked no more."""
        self.closed = True


class Queries:
    """A Prometheus that nobody asks for anything."""

    async def ask(self, *_: object) -> dict[str, Any]:
        """Answer nothing."""
        return {}


class Watch:
    """An assessor with its surroundings."""

    def __init__(self) -> None:
        self.workers = Workers()
        self.seconds = 0.0
        self.changes: asyncio.Queue[PoolKey] = asyncio.Queue()
        self.now = NOW
        self.assessor = self.start()

    def start(self) -> Assessor:
        """An operator that starts anew."""
        self.workers.answers = asyncio.Queue()
        return Assessor(
            self.workers,  # type: ignore[arg-type]
            Queries(),  # type: ignore[arg-type]
            self.changes.put_nowait,
            pace_s=0,
            clock=lambda: self.seconds,
            today=lambda: self.now,
        )

    async def look(
        self, told: Mapping[str, int | None] | Exception, seen: ObservedPool | None = None
    ) -> None:
        """Let workers be asked once, after a reconcile of the pool as it is seen.

        Raises:
            LookupError: another pool is to be reconciled for it.
        """
        if seen is not None:
            self.assessor.assess(seen)
        self.workers.answers.put_nowait(told)
        if await asyncio.wait_for(self.changes.get(), 10) != KEY:
            raise LookupError("another pool is to be reconciled")

    def told(self, seen: ObservedPool) -> Assessment:
        """What is told once the time for it has come.

        Raises:
            LookupError: nothing, as nothing is judged.
        """
        self.seconds += TOLD_S
        found = self.assessor.assess(seen)
        if found is None:
            raise LookupError("no canary is judged")
        return found

    def samples(self, seen: ObservedPool | None = None) -> int:
        """The canary's answers that the verdict rests on."""
        return self.told(seen or canary()).samples


def all_of(answered: int) -> dict[str, int | None]:
    """Every worker has answered so many requests."""
    return dict.fromkeys(("b1", "b2", "g1"), answered)
