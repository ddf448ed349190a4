"""Asks Prometheus for the figures of users' own checks, in threads: the client is a synchronous one."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Final

from zerolayer_operator.api.prometheus import PrometheusSpec
from zerolayer_operator.kube import ApiServerError
from zerolayer_operator.observe.answered import QueryAnswer
from zerolayer_operator.observe.load_sources import Choice, Unusable
from zerolayer_operator.observe.prometheus import Access, LatePrometheusError, PrometheusError

TIMEOUT_S: Final = 5.0
"""Longest time for one answer."""

BUDGET_S: Final = 10.0
"""Longest time for all answers of one pool."""

_NONE_ALLOWED: Final = (
    "this cluster's operator allows no Prometheus; have its chart installed with the address in "
    "prometheus.addresses"
)

Choose = Callable[[str, PrometheusSpec | None], Awaitable[Choice]]
"""Finds the Prometheus that a pool of a namespace may ask, as `LoadSources.choose` does."""


class QueryChecks:
    """Asks what pools' own checks ask for.

    Args:
        choose: Finds the Prometheus and its credentials.
        threads: Where the client runs.
        timeout_s: Longest time for one answer.
        budget_s: Longest time for all answers of one pool.
    """

    def __init__(
        self, choose: Choose, threads: Executor, *, timeout_s: float = TIMEOUT_S, budget_s: float = BUDGET_S
    ) -> None:
        self._choose = choose
        self._threads = threads
        self._timeout_s = timeout_s
        self._budget_s = budget_s

    async def ask(
        self, namespace: str, named: PrometheusSpec | None, queries: Mapping[str, str]
    ) -> Mapping[str, QueryAnswer]:
        """The answers, by the names of the queries; one that fails is told in its answer.

        Args:
            namespace: Of the pool.
            named: The Prometheus that the pool names.
            queries: PromQL by name.
        """
        if not queries:
            return {}
        try:
            choice = await self._choose(namespace, named)
        except ApiServerError as error:
            return _none(
                queries, f"the API server doesn't tell the credentials of Prometheus: {error.message}"
            )
        if not isinstance(choice, Access):
            return _none(queries, choice.reason if isinstance(choice, Unusable) else _NONE_ALLOWED)
        return await self._answers(choice, queries)

    async def _answers(self, access: Access, queries: Mapping[str, str]) -> Mapping[str, QueryAnswer]:
        """One after another: were they asked together, one pool could take every thread."""
        ends = time.monotonic() + self._budget_s
        answers: dict[str, QueryAnswer] = {}
        late: PrometheusError | None = None
        for name, query in queries.items():
            left = ends - time.monotonic()
            try:
                if late is not None or left <= 0:
                    # Who was late once would be so again.
                    raise late or LatePrometheusError(self._budget_s)
                answers[name] = QueryAnswer(await self._value(access, query, min(self._timeout_s, left)))
            except PrometheusError as error:
                late = error if isinstance(error, LatePrometheusError) else None
                answers[name] = QueryAnswer(unknown=f"Prometheus at {access.address} {error}")
        return answers

    async def _value(self, access: Access, query: str, seconds: float) -> float:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                return await loop.run_in_executor(self._threads, _fetch, access, query, seconds)
        except TimeoutError:
            raise LatePrometheusError(seconds) from None


def _none(queries: Mapping[str, str], why: str) -> Mapping[str, QueryAnswer]:
    return dict.fromkeys(queries, QueryAnswer(unknown=why))


def _fetch(access: Access, query: str, seconds: float) -> float:
    from zerolayer_operator.observe.prometheus_http import fetch_value  # noqa: PLC0415 - see there

    return fetch_value(access, query, seconds)
