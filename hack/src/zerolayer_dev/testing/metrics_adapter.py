"""What feeds autoscalers their pools' metric from a Prometheus, as an adapter in a cluster does."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.metrics_api import API_SERVICE, Answer, MetricsApi, registration
from zerolayer_operator.api import names

_PACE_S: Final = 5.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=5)


class MetricsAdapter:
    """The external metrics API of a cluster.

    What a Prometheus does not tell, or not as a number, is missing.

    Args:
        cluster: Where it is registered.
        folder: For its certificate.
    """

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._asked: dict[str, tuple[str, str]] = {}
        self._answers: dict[str, Answer] = {}

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serves it for as long as the context lasts."""
        host = str(self._cluster.addresses.host)
        async with MetricsApi(self._answer).serve(host, self._folder) as port:
            await asyncio.to_thread(self._register, host, port)
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

    def _register(self, host: str, port: int) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": registration("default", host, port)}
        self._cluster.kubectl("create", "--filename=-", stdin=json.dumps(items))
        self._cluster.kubectl("wait", "--for=condition=Available", f"apiservice/{API_SERVICE}")

    async def _keep_asking(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                await asyncio.gather(*(self._ask(session, pool) for pool in list(self._asked)))
                await asyncio.sleep(_PACE_S)

    def _answer(self, _metric: str, _namespace: str, selector: str) -> Answer:
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
