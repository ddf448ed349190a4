"""Workers whose pods nobody runs: each tells its metrics, at an address of its own, as time goes by.

Requests come at random, by a rate that a test sets, and go to the worker that has the least to do. What a
worker counts is kept by a real worker's own account.
"""

import heapq
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import pykube

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.fake_kubelet import make_ready
from zerolayer_dev.testing.pools import POOL_LABEL
from zerolayer_dev.testing.simulated_workers import metrics_text
from zerolayer_operator.build.meta import OPS_PORT
from zerolayer_worker.engine.api import LoadCounts
from zerolayer_worker.engine.load_account import LoadAccount

_LOOK_S = 0.5


class LiveWorker:
    """A worker that runs each request for a time that is known when it comes; first come, first served.

    Args:
        slots: Requests that it runs at once.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._free = [0.0] * slots
        self._events: list[tuple[float, int, str]] = []
        self._account = LoadAccount()

    def burden(self, now: float) -> tuple[int, float]:
        """How much it has to do: busy slots, and when the next one is free."""
        return sum(at > now for at in self._free), self._free[0]

    def take(self, request: str, now: float, service_s: float) -> None:
        """Gets a request, not earlier than the last one."""
        start = max(now, heapq.heappop(self._free))
        heapq.heappush(self._free, start + service_s)
        for what, at in enumerate((now, start, start + service_s)):
            heapq.heappush(self._events, (at, what, request))

    def counts(self, now: float) -> LoadCounts:
        """What it has counted by now."""
        account = self._account
        while self._events and self._events[0][0] <= now:
            at, what, request = heapq.heappop(self._events)
            (account.arrived, account.started, account.left)[what](request, at)
        return account.counts(now)


class LivePool:
    """What is asked of the workers of one pool, whoever they are at the moment.

    Args:
        offered: Slots that would be busy if nobody waited, at an instant in seconds since 1970.
        slots: Requests that one worker runs at once.
        service_s: Seconds that each request takes.
        chance: When requests come.
    """

    def __init__(
        self, offered: Callable[[float], float], slots: int, service_s: float, chance: random.Random
    ) -> None:
        self.offered = offered
        self.workers: dict[str, LiveWorker] = {}
        self._slots = slots
        self._service_s = service_s
        self._chance = chance
        self._numbers = count()
        self._until = time.time()
        self._lock = threading.Lock()

    def add(self, address: str) -> None:
        """A worker has come."""
        with self._lock:
            self._advance(time.time())
            self.workers[address] = LiveWorker(self._slots)

    def remove(self, address: str) -> None:
        """A worker has gone, and what it had to do with it."""
        with self._lock:
            self._advance(time.time())
            del self.workers[address]

    def metrics(self, address: str) -> str:
        """What a worker tells now."""
        with self._lock:
            now = time.time()
            self._advance(now)
            return metrics_text(self.workers[address].counts(now), self._slots)

    def _advance(self, now: float) -> None:
        while self._until < now:
            rate = max(self.offered(self._until), 0.01) / self._service_s
            self._until += self._chance.expovariate(rate)
            if self.workers:
                idlest = min(self.workers.values(), key=lambda worker: worker.burden(self._until))
                idlest.take(str(next(self._numbers)), self._until, self._service_s)


class LiveWorkers:
    """Stands in for nodes: has each pod of some pools ready, and tell its metrics at an address of its own.

    Args:
        cluster: that runs no pods.
        namespace: of the pools.
        pools: by name.
    """

    def __init__(self, cluster: Cluster, namespace: str, pools: dict[str, LivePool]) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._pools = pools
        self._servers: dict[str, ThreadingHTTPServer] = {}
        self._hosts = (f"127.77.{number // 250}.{number % 250 + 1}" for number in count())

    @contextmanager
    def run(self) -> Iterator[None]:
        """Does so until the context ends."""
        ended = threading.Event()
        thread = threading.Thread(target=self._look, args=(ended,))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            for server in self._servers.values():
                _end(server)

    def _look(self, ended: threading.Event) -> None:
        api = kube.client(self._cluster.kubeconfig)
        try:
            while not ended.wait(_LOOK_S):
                for name, pool in self._pools.items():
                    make_ready(self._cluster, api, self._namespace, name, lambda pool=pool: self._serve(pool))
                    self._remove_gone(api, name, pool)
        finally:
            api.session.close()

    def _serve(self, pool: LivePool) -> str:
        address = next(self._hosts)
        pool.add(address)
        handler = type("Handler", (_Handler,), {"pool": pool})
        server = self._servers[address] = ThreadingHTTPServer((address, OPS_PORT), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return address

    def _remove_gone(self, api: pykube.HTTPClient, name: str, pool: LivePool) -> None:
        pods = kube.objects(api, pykube.Pod, namespace=self._namespace, selector={POOL_LABEL: name})
        here = {pod["status"].get("podIP") for pod in pods}
        for address in pool.workers.keys() - here:
            pool.remove(address)
            _end(self._servers.pop(address))


def _end(server: ThreadingHTTPServer) -> None:
    server.shutdown()
    server.server_close()


class _Handler(BaseHTTPRequestHandler):
    pool: LivePool

    def do_GET(self) -> None:
        host: str = self.connection.getsockname()[0]
        content = self.pool.metrics(host).encode()
        self.send_response(200)
        self.send_header("content-type", "text/plain; version=0.0.4")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        # Whoever asked may have given up by now.
        with suppress(ConnectionError):
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class calls it so
        """Says nothing: a test's output is its own."""
