"""Stands in for nodes with workers under load: pods run, are ready, and tell what they are asked.

The workers answer at loopback addresses of their own, which they tell as their pods' addresses, at the port
where the operator asks them; a Prometheus may get the same from one address, with what was before.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from itertools import count
from typing import Final

import pykube
from aiohttp import web

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.fake_kubelet import ready_status
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.pools import POOL_LABEL, REVISION_LABEL, is_ready
from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.shared_load import SharedLoad
from zerolayer_dev.testing.simulated_answers import Answers
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator.api import queries
from zerolayer_operator.build.meta import OPS_PORT
from zerolayer_operator.observe.access import timestamp

HISTORY_S: Final = 25 * 60
_NETWORK: Final = 64
_LOOK_S: Final = 0.5

Lie = Callable[[str, float], float]


def truth(_metric: str, value: float) -> float:
    """What a Prometheus gets unless a test wants something else."""
    return value


class SimulatedNode:
    """Runs the pods of a namespace's pools.

    A scheduler beside it would say of pods that they have no node, until they are ready.

    Args:
        cluster: Where the pools are.
        namespace: Of the pools.
        loads: What is asked of the workers of each, by its name; those of other pools have no address.
        cold_start_s: Seconds from when a pod is made until it is ready.
        answers: What the workers tell of their answers; nothing if absent.

    Attributes:
        room: Pods that there is room for; more stay pending.
        lie: What a Prometheus gets instead of a metric's true value, by the metric's name.
        target: Where a Prometheus is to scrape all workers.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        namespace: str,
        loads: Mapping[str, SharedLoad],
        cold_start_s: float = 0.0,
        answers: Answers | None = None,
    ) -> None:
        self.room = 1000
        self.lie: Lie = truth
        self.target = ""
        self._api = kube.client(cluster.kubeconfig)
        self._namespace = namespace
        self._loads = loads
        self._cold_start_s = cold_start_s
        self._answers = answers
        # Other clusters have tests of their own at the same time, and the port is always the same one.
        network = f"127.{_NETWORK + cluster.record.slot}"
        self._addresses = (f"{network}.{n // 250}.{n % 250 + 1}" for n in count())
        self._pods: dict[str, str] = {}
        self._sites: dict[str, web.TCPSite] = {}
        self._workers: dict[str, tuple[SharedLoad, str]] = {}
        self._revisions: dict[str, str] = {}
        self._history: list[str] = []
        self._told: set[object] = set()
        self._tells = False

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Runs the pods for as long as the context lasts."""
        application = web.Application()
        application.router.add_get("/metrics", self._tell)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        looking = asyncio.create_task(self._keep_looking())
        try:
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
            self.target = ":".join(map(str, self._runner.addresses[0][:2]))
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            await self._runner.cleanup()
            self._api.session.close()

    def begin_earlier(self, *told: Prometheus) -> None:
        """Has the present workers' load begin `HISTORY_S` seconds ago, and waits until these know of it.

        Nothing of the workers is told to any Prometheus before.
        """
        self._history = [line for load in self._loads.values() for line in load.replace_history(HISTORY_S)]
        self._tells = True
        past = f"count(zero_layer_slots offset {HISTORY_S - 60}s)"
        for prometheus in told:
            wait_for(
                lambda prometheus=prometheus: prometheus.value(past) is not None,
                what="Prometheus to know the past",
                seconds=30,
            )

    async def _keep_looking(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(_LOOK_S)

    async def _look(self) -> None:
        found = await asyncio.to_thread(
            kube.objects, self._api, pykube.Pod, namespace=self._namespace, selector=POOL_LABEL
        )
        for name in self._pods.keys() - {pod["metadata"]["name"] for pod in found}:
            await self._end(name)
        left = max(0, self.room - sum(map(is_ready, found)))
        due = [pod for pod in found if self._is_due(pod)]
        await asyncio.gather(*map(self._start, due[:left]))

    def _is_due(self, pod: Manifest) -> bool:
        if is_ready(pod) or "deletionTimestamp" in pod["metadata"]:
            return False
        made = timestamp(pod["metadata"]["creationTimestamp"])
        return made is not None and time.time() - made.timestamp() >= self._cold_start_s

    async def _start(self, pod: Manifest) -> None:
        # It got its node at once.
        status = ready_status(pod, await self._address(pod), begun=pod["metadata"]["creationTimestamp"])
        try:
            await asyncio.to_thread(
                pykube.Pod(self._api, pod).patch, {"status": status}, subresource="status"
            )
        except pykube.exceptions.HTTPError as error:
            # A pod may have been deleted since it was listed.
            if error.code != HTTPStatus.NOT_FOUND:
                raise

    async def _address(self, pod: Manifest) -> str | None:
        """Where a pod's worker answers, which it does from now on."""
        name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
        load = self._loads.get(labels[POOL_LABEL])
        if load is None or name in self._pods:
            return self._pods.get(name)
        address = self._pods[name] = next(self._addresses)
        self._workers[address] = (load, name)
        self._revisions[name] = labels[REVISION_LABEL]
        self._sites[name] = web.TCPSite(self._runner, address, OPS_PORT)
        await self._sites[name].start()
        load.labels.update(queries.workers(self._namespace, labels[POOL_LABEL], labels[REVISION_LABEL]))
        load.join(name)
        return address

    async def _end(self, name: str) -> None:
        load, _ = self._workers.pop(self._pods.pop(name))
        load.leave(name)
        await self._sites.pop(name).stop()

    async def _tell(self, request: web.Request) -> web.Response:
        host = str(request.transport and request.transport.get_extra_info("sockname")[0])
        if host in self._workers:
            load, name = self._workers[host]
            answers = self._answers.told(name, self._revisions[name]) if self._answers is not None else ""
            return web.Response(text=load.told(name) + answers)
        lines: list[str] = []
        if self._tells:
            # A Prometheus keeps its connection; should one connect again, it leaves what it has aside.
            asking = request.transport and request.transport.get_extra_info("peername")
            lines += () if asking in self._told else self._history
            self._told.add(asking)
            lines += [line for load in self._loads.values() for line in load.to_prometheus()]
        return web.Response(text="\n".join([*map(self._altered, lines), ""]))

    def _altered(self, line: str) -> str:
        named, value, *when = line.split(" ")
        told = self.lie(named.partition("{")[0], float(value))
        return " ".join([named, repr(told), *when])
