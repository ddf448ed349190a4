"""Asks Prometheus about pools' load, in threads: the client is a synchronous one."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Final

from zerolayer_operator.api import queries
from zerolayer_operator.observe.load import SPAN_S, STEP_S, ObservedLoad
from zerolayer_operator.observe.load_check import checked
from zerolayer_operator.observe.load_query import LoadSeries, load_query
from zerolayer_operator.observe.load_source import LoadTarget
from zerolayer_operator.observe.scraped_load import ScrapedLoad

TIMEOUT_S: Final = 5.0
"""Longest time for one answer."""

CONCURRENCY: Final = 4
"""Questions to one Prometheus at the same time: one that hangs must leave threads to the others."""

PAUSE_S: Final = 15.0
"""How long a Prometheus is left alone that did not answer in time, whatever the pool."""

_NOT_YET: Final = "Prometheus was not asked yet; wait a minute, or look at the operator's log"

_AGAIN_S: Final = 300
"""What is asked for again of what is known already: late scrapes are in it then."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a Prometheus is reached.

    Attributes:
        address: Its URL, up to what comes before ``/api``.
        token: Bearer token that it wants.
        ca: Certificates, in PEM, of which one must have signed its own; the public CAs count if ``None``.
        certificate: The operator's own certificate and its key, in PEM, where Prometheus wants to see one.
    """

    address: str
    token: str | None = field(default=None, repr=False)
    ca: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Question:
    """A query about a span, whose ends are multiples of `STEP_S` seconds since 1970."""

    query: str
    first: int
    end: int


class PrometheusError(Exception):
    """Prometheus gives no figures; the message goes on from its address, and says what to do."""


class LatePrometheusError(PrometheusError):
    """It takes longer than so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"gives no answer within {seconds:g} s; look whether it is overloaded or out of reach"
        )


@dataclass(slots=True)
class _Asked:
    """What is known of one revision of a pool."""

    revision: str
    series: LoadSeries | None = None
    error: PrometheusError | None = None


class PrometheusLoad:
    """Pools' load as one Prometheus knows it, checked by what the operator knows itself.

    Args:
        access: How Prometheus is reached.
        own: What the operator knows from the workers.
        threads: Where the client runs; bounded, and shared by all of these.
        timeout_s: Longest time for one answer.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        access: Access,
        own: ScrapedLoad,
        threads: Executor,
        *,
        timeout_s: float = TIMEOUT_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._access = access
        self._own = own
        self._threads = threads
        self._timeout_s = timeout_s
        self._clock = clock
        self._places = asyncio.Semaphore(CONCURRENCY)
        self._pools: dict[tuple[str, str], _Asked] = {}
        self._late_until = 0.0

    async def refresh(self, target: LoadTarget) -> None:
        """Asks Prometheus, and the workers themselves."""
        await asyncio.gather(self._own.refresh(target), self._ask(target))

    def load(self, target: LoadTarget) -> ObservedLoad:
        """The load of a target's workers; the operator's own, marked unknown, where Prometheus gives none."""
        asked = self._asked(target)
        if asked.error is not None:
            reason = f"Prometheus at {self._access.address} {asked.error}"
            return replace(self._own.load(target), unknown=reason, pending=False)
        if asked.series is None:
            return replace(self._own.load(target), unknown=_NOT_YET, pending=True)
        return checked(asked.series, target, self._own.recent(target), self._clock())

    def forget(self, namespace: str, pool: str) -> None:
        """Forgets a pool; nothing happens if it was not known."""
        self._pools.pop((namespace, pool), None)
        self._own.forget(namespace, pool)

    def _asked(self, target: LoadTarget) -> _Asked:
        key = (target.namespace, target.pool)
        asked = self._pools.get(key)
        if asked is None or asked.revision != target.revision:
            asked = self._pools[key] = _Asked(target.revision)
        return asked

    async def _ask(self, target: LoadTarget) -> None:
        asked = self._asked(target)
        try:
            newer = await self._answer(target, asked.series)
        except PrometheusError as error:
            asked.error = error
        else:
            asked.error = None
            asked.series = newer if asked.series is None else asked.series.continued(newer)

    async def _answer(self, target: LoadTarget, known: LoadSeries | None) -> LoadSeries:
        """The figures that are not known yet, or all of the last hour.

        Raises:
            PrometheusError: Prometheus gives none.
        """
        async with self._places:
            if time.monotonic() < self._late_until:
                raise LatePrometheusError(self._timeout_s)
            question = _question(target, known, self._clock())
            loop = asyncio.get_running_loop()
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await loop.run_in_executor(
                        self._threads, _fetch, self._access, question, self._timeout_s
                    )
            except (TimeoutError, LatePrometheusError):
                self._late_until = time.monotonic() + PAUSE_S
                raise LatePrometheusError(self._timeout_s) from None


def _question(target: LoadTarget, known: LoadSeries | None, now: float) -> Question:
    end = int(now) // STEP_S * STEP_S
    recent = known is not None and 0 <= end - known.end < _AGAIN_S
    return Question(
        load_query(queries.workers(target.namespace, target.pool, target.revision)),
        end - (_AGAIN_S if recent else SPAN_S),
        end,
    )


def _fetch(access: Access, question: Question, seconds: float) -> LoadSeries:
    from zerolayer_operator.observe.prometheus_http import fetch  # noqa: PLC0415 - see there

    return fetch(access, question, seconds)
