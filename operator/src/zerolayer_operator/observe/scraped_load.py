"""Pools' load by the operator's own scrapes: for clusters without Prometheus, and to check Prometheus by."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from zerolayer_operator.observe.first_tokens import Waits
from zerolayer_operator.observe.load import SPAN_S, ObservedLoad, Requests
from zerolayer_operator.observe.load_log import LoadLog
from zerolayer_operator.observe.load_source import LoadTarget
from zerolayer_operator.observe.scrape import Scraper

RECENT_S: Final = 300


@dataclass(slots=True)
class _Scraped:
    revision: str
    log: LoadLog = field(default_factory=LoadLog)


class ScrapedLoad:
    """Pools' load as their workers tell it; nothing is known of the time before the first question.

    Args:
        scraper: Asks workers.
        clock: Seconds since 1970.
    """

    def __init__(self, scraper: Scraper, clock: Callable[[], float] = time.time) -> None:
        self._scraper = scraper
        self._clock = clock
        self._pools: dict[tuple[str, str], _Scraped] = {}

    async def refresh(self, target: LoadTarget) -> None:
        """Asks every worker; those of another revision than before begin a new account."""
        addresses = (worker.ip for worker in target.workers)
        answers = await self._scraper.scrape(addresses, first_tokens=target.first_tokens)
        self._log(target).add(self._clock(), target, answers)

    def load(self, target: LoadTarget) -> ObservedLoad:
        """The load of a target's workers, out of memory."""
        return self._log(target).load(self._clock(), target, SPAN_S)

    def recent(self, target: LoadTarget) -> ObservedLoad:
        """The same of the last five minutes alone."""
        return self._log(target).load(self._clock(), target, RECENT_S)

    def requests(self, target: LoadTarget) -> dict[str, Requests] | None:
        """What each of a target's workers has to do, by name, as far as it said so lately.

        ``None`` before the first question.
        """
        return self._log(target).requests(self._clock())

    def waits(self, target: LoadTarget) -> Waits | None:
        """How long requests of late waited for their first token; ``None`` where that is not known."""
        return self._log(target).waits(self._clock(), target)

    def forget(self, namespace: str, pool: str) -> None:
        """Forgets a pool; nothing happens if it was not known."""
        self._pools.pop((namespace, pool), None)

    def _log(self, target: LoadTarget) -> LoadLog:
        key = (target.namespace, target.pool)
        scraped = self._pools.get(key)
        if scraped is None or scraped.revision != target.revision:
            scraped = self._pools[key] = _Scraped(target.revision)
        return scraped.log
