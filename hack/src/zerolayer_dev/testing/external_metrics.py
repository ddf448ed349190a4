"""The external metrics API of a cluster, by which a test sizes the pools that are autoscaled there."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.metrics_api import Answer, MetricsApi, Query, register


def nothing(*_asked: str) -> Answer:
    """The answer while no test gives another one."""
    return Answer()


class ExternalMetrics:
    """What the autoscalers of a cluster are told.

    Args:
        cluster: Which has no external metrics yet.
        folder: For the certificate.

    Attributes:
        answer: Gives the answer to a query that has just come: by the metric's name, its namespace and the
            query's label selector.
    """

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self.answer: Callable[[str, str, str], Answer] = nothing
        self._cluster = cluster
        self._folder = folder
        self._api = MetricsApi(self._tell)

    @property
    def queries(self) -> list[Query]:
        """All queries so far."""
        return self._api.queries

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serves them for as long as the context lasts; the API server passes queries on from then on."""
        host = str(self._cluster.addresses.host)
        async with self._api.serve(host, self._folder) as port:
            # In a thread: the API server asks for what there is, and is answered here.
            await asyncio.to_thread(register, self._cluster, host, port)
            yield

    def _tell(self, metric: str, namespace: str, selector: str) -> Answer:
        """The answer as it is set by now."""
        return self.answer(metric, namespace, selector)
