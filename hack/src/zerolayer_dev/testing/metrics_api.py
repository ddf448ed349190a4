"""An external metrics API that answers what a test says, and knows who asked for what and when."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from aiohttp import web

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.cluster.pki import Authority, Identity

_GROUP, _VERSION = "external.metrics.k8s.io", "v1beta1"
_ROOT = f"/apis/{_GROUP}/{_VERSION}"
_API_SERVICE = f"{_VERSION}.{_GROUP}"


class Fault(Enum):
    """What goes wrong with a query."""

    ERROR = "HTTP 500"
    DROPPED = "the connection is closed without an answer"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gets.

    Attributes:
        values_milli: one item each, in thousandths; none at all is a metric that is missing.
        fault: what happens instead.
        delay_s: seconds until it is sent.
    """

    values_milli: tuple[int, ...] = ()
    fault: Fault | None = None
    delay_s: float = 0.0

    @property
    def sum_milli(self) -> int | None:
        """The sum of the items, in thousandths; None where there is none to be had."""
        return sum(self.values_milli) if self.values_milli and self.fault is None else None


@dataclass(frozen=True, slots=True)
class Query:
    """One query.

    Attributes:
        metric: its name.
        selector: its label selector.
        at: when it came, in seconds since the epoch.
        answered_at: when its answer was sent.
        answer: what it got.
    """

    metric: str
    selector: str
    at: float
    answered_at: float
    answer: Answer


class MetricsApi:
    """The API's log, and what it answers.

    Args:
        answer: what a metric gets now, by its name, its namespace and the query's label selector.
    """

    def __init__(self, answer: Callable[[str, str, str], Answer]) -> None:
        self.queries: list[Query] = []
        self._answer = answer
        self._connections: set[asyncio.Transport] = set()
        self._news = asyncio.Event()

    async def next_query(self, metric: str, timeout_s: float) -> bool:
        """Waits for the next answer about a metric; tells whether there was one in time."""
        seen = len(self.queries)
        try:
            async with asyncio.timeout(timeout_s):
                while not any(query.metric == metric for query in self.queries[seen:]):
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    @asynccontextmanager
    async def serve(self, host: str, folder: Path) -> AsyncIterator[int]:
        """Serves over TLS on a free port of `host`, and yields the port.

        Args:
            host: address.
            folder: for the certificate, which nobody has a reason to trust.
        """
        application = web.Application()
        application.router.add_get(_ROOT, _resources)
        application.router.add_get(_ROOT + "/namespaces/{namespace}/{metric}", self._metric)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, 0, ssl_context=_tls(host, folder))
            await site.start()
            yield runner.addresses[0][1]
        finally:
            for connection in self._connections:  # else each waits for its client to agree
                connection.abort()
            await runner.cleanup()

    async def _metric(self, request: web.Request) -> web.StreamResponse:
        at, metric = time.time(), request.match_info["metric"]
        selector = request.query.get("labelSelector", "")
        answer = self._answer(metric, request.match_info["namespace"], selector)
        connection = request.transport
        if isinstance(connection, asyncio.Transport):
            self._connections.add(connection)
        await asyncio.sleep(answer.delay_s)
        self.queries.append(Query(metric, selector, at, time.time(), answer))
        self._news.set()
        self._news = asyncio.Event()
        if answer.fault is Fault.DROPPED and connection is not None:
            connection.abort()
        if answer.fault is not None:
            return web.Response(status=500)
        return web.json_response(_value_list(metric, answer.values_milli))


def register(cluster: Cluster, host: str, port: int) -> None:
    """Has a cluster's API server pass queries on to an address, and waits until it does.

    Args:
        cluster: without external metrics until now.
        host: address, which a Service names as if it were a host: so nothing need route ClusterIPs.
        port: of the server.
    """
    items = {"apiVersion": "v1", "kind": "List", "items": _registration("default", host, port)}
    cluster.kubectl("create", "--filename=-", stdin=json.dumps(items))
    cluster.kubectl("wait", "--for=condition=Available", f"apiservice/{_API_SERVICE}")


def _registration(namespace: str, host: str, port: int) -> list[dict[str, Any]]:
    service = {"name": "external-metrics", "namespace": namespace}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": service,
            "spec": {"type": "ExternalName", "externalName": host, "ports": [{"port": port}]},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": _API_SERVICE},
            "spec": {
                "group": _GROUP,
                "version": _VERSION,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {**service, "port": port},
            },
        },
    ]


async def _resources(_: web.Request) -> web.Response:
    return web.json_response(
        {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{_GROUP}/{_VERSION}",
            "resources": [],
        }
    )


def _value_list(metric: str, values_milli: tuple[int, ...]) -> dict[str, Any]:
    timestamp = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    items = [
        {"metricName": metric, "metricLabels": {}, "timestamp": timestamp, "value": f"{value}m"}
        for value in values_milli
    ]
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": f"{_GROUP}/{_VERSION}",
        "metadata": {},
        "items": items,
    }


def _tls(host: str, folder: Path) -> ssl.SSLContext:
    certificate, key = Authority("metrics").issue(Identity("metrics", "metrics", hosts=(host,)))
    (folder / "metrics.crt").write_bytes(certificate)
    (folder / "metrics.key").write_bytes(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "metrics.crt", folder / "metrics.key")
    return context
