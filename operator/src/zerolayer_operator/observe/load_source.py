"""Whose load is looked at, and who knows it."""

from dataclasses import dataclass
from typing import Final, Protocol

from zerolayer_operator.observe.load import ObservedLoad
from zerolayer_operator.observe.state import ObservedPool


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker as a source of figures.

    Attributes:
        name: Of its pod.
        ip: Of its pod.
        ready_since: When it became ready, in seconds since 1970; ``None`` where it is to go: it still has
            figures then, but need not.
    """

    name: str
    ip: str
    ready_since: float | None = None


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """The workers whose load is looked at: those of one revision of a pool.

    Attributes:
        namespace: Of the pool.
        pool: Its name.
        revision: The revision.
        workers: Those of it that may have figures.
        first_tokens: Whether it is asked too how long requests wait for their first token.
    """

    namespace: str
    pool: str
    revision: str
    workers: tuple[Worker, ...] = ()
    first_tokens: bool = False

    def ready_before(self, instant: float) -> tuple[Worker, ...]:
        """The workers that are ready and were so at an instant."""
        return tuple(
            item for item in self.workers if item.ready_since is not None and item.ready_since <= instant
        )

    @property
    def ready(self) -> int:
        """How many workers are ready."""
        return sum(item.ready_since is not None for item in self.workers)


class LoadSource(Protocol):
    """Something that knows pools' load, as of when it last asked."""

    async def refresh(self, target: LoadTarget) -> None:
        """Asks about a target; what goes wrong is remembered and told by `load`."""
        ...

    def load(self, target: LoadTarget) -> ObservedLoad:
        """The load of a target's workers, out of memory."""
        ...

    def forget(self, namespace: str, pool: str) -> None:
        """Forgets a pool; nothing happens if it was not known."""
        ...


NO_WORKER: Final = (
    "no worker of the pool is ready, so there is no load to measure; the pool's conditions say what its "
    "workers wait for"
)


def load_target(pool: ObservedPool, revision: str) -> LoadTarget:
    """The workers of one of a pool's revisions that may have figures.

    A pod that is neither ready nor on its way out is none of them: it has no requests, and the address of one
    that has ended may be another pod's by now.
    """
    here = [(pod, pod.ip) for pod in pool.pods if pod.revision == revision and pod.ip is not None]
    ready = [
        Worker(pod.name, ip, pod.ready_at.timestamp())
        for pod, ip in here
        if pod.ready_at is not None and not pod.deleting
    ]
    taken = {worker.ip for worker in ready}
    leaving = [Worker(pod.name, ip) for pod, ip in here if pod.deleting and ip not in taken]
    return LoadTarget(pool.namespace, pool.name, revision, (*ready, *leaving))
