"""Stands in for the workers of very many pools: tells the metrics of each, and the load to autoscalers.

Runs inside of a cluster's network, where every address of the range for pods is its own, so that one process
answers for all of them. Which pod has which address it learns from the API server.
"""

import asyncio
import json
import math
import random
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

import pykube
import requests
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from zerolayer_dev.testing import kube
from zerolayer_dev.testing.metrics_api import Answer, MetricsApi
from zerolayer_dev.testing.pools import POOL_LABEL, is_ready
from zerolayer_dev.testing.worker_load import NAMES

SLOTS = 8
SERVICE_S = 4.0
PERIOD_S = 1800
NOISE_S = 15
"""Offered load rises and falls once in `PERIOD_S`, and is another one every `NOISE_S` seconds."""

_MEAN, _SWING, _NOISE = 11.0, 6.0, 0.1

Key = tuple[str, str]


def offered(pool: Key, now: float) -> float:
    """The load that is asked of a pool, in slots: enough for one to three workers at a target of 70 %."""
    seed = zlib.crc32("/".join(pool).encode())
    wave = math.sin(2 * math.pi * (now / PERIOD_S + seed / 2**32))
    noise = random.Random(seed ^ int(now // NOISE_S)).uniform(-_NOISE, _NOISE)  # noqa: S311 - no secret
    return (_MEAN + _SWING * wave) * (1 + noise)


@dataclass(slots=True)
class _Counters:
    at: float
    requests: float = 0.0
    busy_s: float = 0.0

    def run(self, now: float, busy: float) -> Mapping[str, float]:
        """Counts on at a number of busy slots; nobody waits."""
        seconds, self.at = now - self.at, now
        self.busy_s += busy * seconds
        self.requests += busy * seconds / SERVICE_S
        return {
            "arrivals": self.requests,
            "finished": self.requests,
            "busy_s": self.busy_s,
            "service_s": self.busy_s,
            "share_s": self.busy_s / SLOTS,
            "queued_s": 0.0,
        }


@dataclass
class Crowd:
    """All workers, by their addresses."""

    pools: dict[str, Key] = field(default_factory=dict[str, Key])
    _sizes: Counter[Key] = field(default_factory=Counter[Key])
    _counters: dict[str, _Counters] = field(default_factory=dict[str, _Counters])

    def look(self, change: str, pod: Mapping[str, Any]) -> None:
        """Takes in what the API server tells of a pod."""
        metadata, address = pod["metadata"], pod.get("status", {}).get("podIP")
        if address is None:
            return
        if change == "DELETED":
            if self._counters.pop(address, None) is not None:
                self._sizes[self.pools.pop(address)] -= 1
        elif is_ready(pod) and address not in self.pools:
            pool = (metadata["namespace"], metadata["labels"][POOL_LABEL])
            self._sizes[pool] += 1
            self.pools[address] = pool
            self._counters[address] = _Counters(time.time())

    def busy(self, pool: Key, now: float) -> float:
        """Busy slots of each of a pool's workers."""
        return min(float(SLOTS), offered(pool, now) / max(1, self._sizes[pool]))

    def metrics(self, address: str) -> str | None:
        """What a worker tells of itself; ``None`` where there is none at an address."""
        pool, counters = self.pools.get(address), self._counters.get(address)
        if pool is None or counters is None:
            return None
        now = time.time()
        counted = counters.run(now, self.busy(pool, now))
        lines = [f"{name} {counted[short]!r}" for name, short in NAMES.items()]
        return "\n".join([*lines, f"zero_layer_slots {SLOTS}", "zero_layer_draining 0", ""])

    def answer(self, namespace: str, selector: str) -> Answer:
        """What an autoscaler is told of a pool: its utilization in percent, summed up over its workers."""
        labels = dict(part.split("=", 1) for part in selector.split(","))
        pool = (namespace, labels["zerolayer_dev_pool"])
        return Answer((round(1000 * 100 * offered(pool, time.time()) / SLOTS),))


def _watch(crowd: Crowd, kubeconfig: Path) -> None:
    pods = pykube.Pod.objects(kube.client(kubeconfig), namespace=cast("Any", pykube.all)).filter(
        selector=POOL_LABEL
    )
    while True:
        # A watch begins with all there is, and ends when nothing has happened for a while.
        with suppress(requests.RequestException):
            for event in cast("Any", pods).watch():
                crowd.look(event.type, event.object.obj)


def _filling() -> str:
    """As much text as a worker has beside its load: histograms of two routes."""
    registry = CollectorRegistry()
    for name in ("request_duration", "time_to_first_token"):
        buckets = tuple(0.005 * 2**power for power in range(16))
        histogram = Histogram(
            f"zero_layer_{name}_seconds", "Filling.", ["route"], registry=registry, buckets=buckets
        )
        for route in ("/v1/messages", "/v1/chat/completions"):
            histogram.labels(route=route).observe(1)
    return generate_latest(registry).decode()


async def serve(crowd: Crowd, host: str, port: int, folder: Path) -> None:
    """Serves workers' metrics at every address, and the external metrics API at one of them.

    The latter's port goes to stdout as soon as all of it listens.
    """
    filling = _filling()

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            text = crowd.metrics(writer.get_extra_info("sockname")[0])
            body = b"" if text is None else (filling + text).encode()
            status = "503 Gone" if text is None else "200 OK"
            head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    api = MetricsApi(lambda _metric, namespace, selector: crowd.answer(namespace, selector))
    async with (
        await asyncio.start_server(tell, "0.0.0.0", port, backlog=1024),  # noqa: S104 - all pods
        api.serve(host, folder) as own,
    ):
        print(own, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Serves as the JSON object says that is the only argument."""
    given = json.loads(sys.argv[1])
    crowd = Crowd()
    threading.Thread(target=_watch, args=(crowd, Path(given["kubeconfig"])), daemon=True).start()
    asyncio.run(serve(crowd, str(IPv4Address(given["host"])), int(given["port"]), Path(given["folder"])))


if __name__ == "__main__":
    main()
