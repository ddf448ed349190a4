"""Leader election on one `coordination.k8s.io/v1` Lease.

`decide` is pure and says what a candidate may do with what it sees; `Elector` does it over a `LeaseStore`
whose writes fail where somebody else wrote first. Time is only ever compared on this machine's monotonic
clock, by how long a Lease has not changed: clocks of other machines, which `renewTime` carries, are not
trusted. A leader counts from the moment *before* it sent its last renewal and gives up well before a
standby, which counts from when it *saw* that renewal, may take over. So there are never two.

The election helper of the `kubernetes` package was weighed and left: it reads wall clocks, cannot give the
Lease back, and goes on working for as long as a request hangs.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Protocol

from zerolayer_operator import metrics

logger = logging.getLogger(__name__)


class LeaseLostError(Exception):
    """The Lease could not be renewed in time, or somebody else holds it."""


class LeaseUnavailableError(Exception):
    """The API server did not answer, or answered with something else than the Lease."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says.

    Attributes:
        holder: Identity of the holder; empty where it was given back.
        duration_s: Seconds without a renewal after which it may be taken over.
        transitions: How often the holder changed.
        acquired: When the holder took it, for people who read it.
        renewed: When the holder last renewed it, for people who read it.
        version: The object's `resourceVersion`; empty for one that does not exist yet.
    """

    holder: str
    duration_s: int
    transitions: int
    acquired: datetime
    renewed: datetime
    version: str = ""


class LeaseStore(Protocol):
    """Reads and writes one Lease; both raise `LeaseUnavailableError` where the outcome is unknown."""

    async def read(self) -> LeaseRecord | None:
        """Returns the Lease, or None where there is none."""
        ...

    async def write(self, record: LeaseRecord) -> LeaseRecord | None:
        """Creates the Lease, or replaces the version that `record` names; None where that is outdated."""
        ...


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds by which an election runs, all derived from how long a Lease lasts.

    Attributes:
        duration_s: How long a Lease lasts without being renewed.
    """

    duration_s: int = 15

    @property
    def deadline_s(self) -> float:
        """How long after its last renewal a leader goes on; the rest of the duration is safety margin."""
        return self.duration_s * 2 / 3

    @property
    def renew_s(self) -> float:
        """How long a leader waits between two renewals."""
        return self.duration_s / 3

    @property
    def retry_s(self) -> float:
        """How long a standby waits between two looks, and a leader after a failed renewal."""
        return self.duration_s / 7.5


class Step(Enum):
    """What a candidate may do next."""

    CREATE = auto()
    TAKE = auto()
    RENEW = auto()
    WAIT = auto()


@dataclass(frozen=True, slots=True)
class Seen:
    """A Lease, and when this candidate first saw it in this version (monotonic seconds)."""

    record: LeaseRecord
    at: float


def decide(seen: Seen | None, me: str, now: float) -> Step:
    """Says what the candidate `me` may do with the Lease it sees at `now` (monotonic seconds)."""
    if seen is None:
        return Step.CREATE
    if seen.record.holder == me:
        return Step.RENEW
    if not seen.record.holder or now - seen.at >= seen.record.duration_s:
        return Step.TAKE
    return Step.WAIT


class Elector:
    """One candidate for the Lease.

    Args:
        store: Where the Lease is.
        me: This candidate's identity; no two living processes may share it.
        timing: How long things take.
        on_round: Called after every look at the Lease with whether the API server answered.
        clock: A monotonic clock in seconds.
        today: The wall clock, for what people read in the Lease.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        store: LeaseStore,
        me: str,
        timing: Timing,
        *,
        on_round: Callable[[bool], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._me = me
        self._timing = timing
        self._on_round = on_round
        self._clock = clock
        self._today = today
        self._sleep = sleep
        self._seen: Seen | None = None
        self._stale = True
        self._held_until: float | None = None

    @property
    def leader(self) -> str:
        """Who held the Lease when this candidate last saw it; empty where that is nobody or not known."""
        return self._seen.record.holder if self._seen else ""

    def leads(self) -> bool:
        """Whether this candidate may act as the leader right now."""
        return self._held_until is not None and self._clock() < self._held_until

    async def acquire(self) -> None:
        """Returns once the Lease is held."""
        while not await self._round(self._timing.deadline_s):
            await self._sleep(self._timing.retry_s)
        logger.info("this replica leads", extra={"identity": self._me})

    async def hold(self) -> None:
        """Renews the Lease for as long as that works.

        Raises:
            LeaseLostError: It was not renewed in time or is somebody else's.
        """
        pause = self._timing.renew_s
        while (left := self._left()) > 0:
            await self._sleep(min(pause, left))
            if (left := self._left()) > 0:
                renewed = await self._round(left)
                pause = self._timing.renew_s if renewed else self._timing.retry_s
        raise LeaseLostError(f"the Lease was lost: {self._why()}")

    async def release(self) -> None:
        """Gives the Lease back if it is held, so that a standby need not wait for it to run out.

        Raises:
            LeaseUnavailableError: The API server did not say how it went.
        """
        if not self.leads():
            return
        self._held_until = None
        if self._stale:
            self._see(await self._store.read())
        if self._seen is not None and self._seen.record.holder == self._me:
            await self._store.write(replace(self._seen.record, holder="", renewed=self._today()))

    async def _round(self, limit_s: float) -> bool:
        """Tries once to take or renew the Lease; False where that failed or took longer than `limit_s`."""
        result = "error"
        try:
            async with asyncio.timeout(limit_s):
                result = "held" if await self.attempt() else "refused"
        except (LeaseUnavailableError, TimeoutError) as error:
            logger.warning("the Lease is out of reach: %s", error or "no answer in time")
        finally:
            self._on_round(result != "error")
            metrics.LEASE_ATTEMPTS.labels(result).inc()
        return result == "held"

    async def attempt(self) -> bool:
        """Looks at the Lease and takes or renews it if that is allowed; says whether it is held now.

        Raises:
            LeaseUnavailableError: The API server did not say how it went.
        """
        if self._stale:
            self._see(await self._store.read())
        step = decide(self._seen, self._me, self._clock())
        # Look again before the next write, unless the one below is answered: cut off, it may have happened.
        self._stale = True
        if step is Step.WAIT:
            self._held_until = None
            return False
        # Taken before the request: whoever sees the renewal sees it later than this.
        sent = self._clock()
        written = await self._store.write(self._next_record(step))
        if written is None:
            return False
        self._see(written)
        self._stale = False
        self._held_until = sent + self._timing.deadline_s
        return True

    def _see(self, record: LeaseRecord | None) -> None:
        if record is None:
            self._seen = None
        elif self._seen is None or self._seen.record.version != record.version:
            self._seen = Seen(record, self._clock())

    def _next_record(self, step: Step) -> LeaseRecord:
        now, duration = self._today(), self._timing.duration_s
        if self._seen is None:
            return LeaseRecord(self._me, duration, 0, acquired=now, renewed=now)
        old = self._seen.record
        if step is Step.RENEW and self._held_until is not None:
            return replace(old, duration_s=duration, renewed=now)
        transitions = old.transitions + (step is Step.TAKE)
        return LeaseRecord(self._me, duration, transitions, acquired=now, renewed=now, version=old.version)

    def _left(self) -> float:
        return 0 if self._held_until is None else self._held_until - self._clock()

    def _why(self) -> str:
        holder = self._seen.record.holder if self._seen else ""
        return "it was not renewed in time" if holder in {"", self._me} else f"{holder} holds it"
