"""An external metrics API beside tests that are not asynchronous themselves."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.metrics_api import API_SERVICE, Answer, MetricsApi, Query, registration


def nothing() -> Answer:
    """The answer while no test gives another one."""
    return Answer()


class SettableMetrics:
    """What the autoscalers of a cluster are told, whatever they ask for.

    Attributes:
        answer: Gives the answer to a query that has just come.
    """

    def __init__(self) -> None:
        self.answer: Callable[[], Answer] = nothing
        self._api = MetricsApi(lambda *_asked: self.answer())

    @property
    def queries(self) -> list[Query]:
        """All queries so far."""
        return self._api.queries

    @contextmanager
    def serve(self, cluster: LocalCluster, folder: Path) -> Iterator[None]:
        """Serves them in a thread, and has the cluster's API server pass queries on.

        Args:
            cluster: Which has no external metrics yet.
            folder: For the certificate.
        """
        host, loop = str(cluster.addresses.host), asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        serving = self._api.serve(host, folder)
        try:
            port = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(30)
            items = registration("default", host, port)
            body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
            cluster.kubectl("create", "--filename=-", stdin=body)
            cluster.kubectl("wait", "--for=condition=Available", f"apiservice/{API_SERVICE}")
            yield
            asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(30)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
