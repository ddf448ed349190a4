"""What feeds autoscalers their pools' metric from a Prometheus, as an adapter in a cluster does."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.external_metrics import ExternalMetrics
from zerolayer_dev.testing.metrics_api import Answer
from zerolayer_operator.api import names

_PACE_S: Final = 5.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=5)


class MetricsAdapter(ExternalMetrics):
    """External metrics that come from Prometheus; what that does not tell, or not as a number, is missing.

    Args:
        cluster: Which has no external metrics yet.
        folder: For the certificate.
    """

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        super().__init__(cluster, folder)
        self.answer = self._newest
        self._asked: dict[str, tuple[str, str]] = {}
        self._answers: dict[str, Answer] = {}

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serves them for as long as the context lasts, and goes on asking meanwhile."""
        async with super().serve():
            asking = asyncio.create_task(self._keep_asking())
            try:
                yield
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)

    def follow(self, autoscaler: Mapping[str, Any], address: str) -> None:
        """Feeds a pool's autoscaler by the query that it bears, from the Prometheus at an address."""
        pool = autoscaler["metadata"]["name"]
        self._asked[pool] = (address, autoscaler["metadata"]["annotations"][names.ANNOTATION_QUERY])

    async def _keep_asking(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                await asyncio.gather(*(self._ask(session, pool) for pool in list(self._asked)))
                await asyncio.sleep(_PACE_S)

    def _newest(self, _metric: str, _namespace: str, selector: str) -> Answer:
        parts = dict(part.split("=", 1) for part in selector.split(","))
        return self._answers.get(parts[names.PROMETHEUS_POOL], Answer())

    async def _ask(self, session: aiohttp.ClientSession, pool: str) -> None:
        address, query = self._asked[pool]
        answer = Answer()
        with suppress(aiohttp.ClientError, TimeoutError, LookupError, ValueError):
            async with session.get(
                f"{address}/api/v1/query", params={"query": query}, timeout=_TIMEOUT
            ) as found:
                (row,) = (await found.json())["data"]["result"]
                value = float(row["value"][1])
            if math.isfinite(value):
                answer = Answer((round(value * 1000),))
        self._answers[pool] = answer
