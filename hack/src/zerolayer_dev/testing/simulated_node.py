"""Stands in for nodes with workers under load: pods run, are ready, and tell what they are asked.

The workers answer at loopback addresses of their own, which they tell as their pods' addresses, at the port
where the operator asks them; a Prometheus gets the same from one address.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, Final

import pykube
from aiohttp import web

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.cluster.commands import CommandError
from zerolayer_dev.testing.fake_kubelet import ready_status
from zerolayer_dev.testing.kube import objects
from zerolayer_dev.testing.pools import POOL_LABEL, REVISION_LABEL, is_ready
from zerolayer_dev.testing.shared_load import SharedLoad
from zerolayer_operator.api import queries
from zerolayer_operator.build.meta import OPS_PORT
from zerolayer_operator.observe.access import timestamp

COLD_START_S: Final = 5.0
_LOOK_S: Final = 1.0


class SimulatedNode:
    """Runs the pods of some pools.

    The cluster must not have a scheduler, which would say of the pods that they have no node.

    Args:
        cluster: Where the pools are.
        api: A client of it.
        namespace: Of the pools.
        loads: What is asked of each, by its name.
        network: Workers' addresses are 127.`network`.0.1 and up.
    """

    def __init__(
        self,
        cluster: Cluster,
        api: pykube.HTTPClient,
        namespace: str,
        loads: Mapping[str, SharedLoad],
        network: int,
    ) -> None:
        self._cluster = cluster
        self._api = api
        self._namespace = namespace
        self._loads = loads
        self._addresses = (f"127.{network}.{n // 250}.{n % 250 + 1}" for n in count())
        self._pods: dict[str, str] = {}
        self._sites: dict[str, web.TCPSite] = {}
        self._workers: dict[str, tuple[str, str]] = {}
        self._history: list[str] = []
        self._told: set[object] = set()
        self._tells = False
        self.target = ""
        """Where Prometheus is to scrape all workers."""

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

    def begin_earlier(self, seconds: float) -> None:
        """Has the present workers' load begin that long ago; Prometheus is told from its next scrape on."""
        self._tells = True
        self._history = [line for load in self._loads.values() for line in load.replace_history(seconds)]

    async def _keep_looking(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(_LOOK_S)

    async def _look(self) -> None:
        pods = await asyncio.to_thread(objects, self._api, pykube.Pod, namespace=self._namespace)
        mine = {
            pod["metadata"]["name"]: pod
            for pod in pods
            if pod["metadata"].get("labels", {}).get(POOL_LABEL) in self._loads
        }
        for name in self._pods.keys() - mine.keys():
            await self._end(name)
        due = [
            pod for pod in mine.values() if not is_ready(pod) and "deletionTimestamp" not in pod["metadata"]
        ]
        await asyncio.gather(*(self._start(pod) for pod in due if _age(pod) >= COLD_START_S))

    async def _start(self, pod: dict[str, Any]) -> None:
        name, pool = pod["metadata"]["name"], pod["metadata"]["labels"][POOL_LABEL]
        revision = pod["metadata"]["labels"][REVISION_LABEL]
        address = self._pods.get(name)
        if address is None:
            address = self._pods[name] = next(self._addresses)
            self._workers[address] = (pool, name)
            self._sites[name] = web.TCPSite(self._runner, address, OPS_PORT)
            await self._sites[name].start()
            self._loads[pool].labels.update(queries.workers(self._namespace, pool, revision))
            self._loads[pool].join(name)
        # It got its node at once.
        status = ready_status(pod, address, begun=pod["metadata"]["creationTimestamp"])
        # A pod may have been deleted since it was listed.
        with suppress(CommandError):
            await asyncio.to_thread(
                self._cluster.kubectl,
                "-n", self._namespace, "patch", "pod", name, "--subresource=status",
                "--type=strategic", f"--patch={json.dumps({'status': status})}",
            )  # fmt: skip

    async def _end(self, name: str) -> None:
        address = self._pods.pop(name)
        pool, _ = self._workers.pop(address)
        self._loads[pool].leave(name)
        await self._sites.pop(name).stop()

    async def _tell(self, request: web.Request) -> web.Response:
        host = str(request.transport and request.transport.get_extra_info("sockname")[0])
        if host in self._workers:
            pool, name = self._workers[host]
            return web.Response(text=self._loads[pool].told(name))
        lines: list[str] = []
        if self._tells:
            # A Prometheus keeps its connection; should one connect again, it leaves what it has aside.
            asking = request.transport and request.transport.get_extra_info("peername")
            lines += () if asking in self._told else self._history
            self._told.add(asking)
            lines += [line for load in self._loads.values() for line in load.to_prometheus()]
        return web.Response(text="\n".join([*lines, ""]))


def _age(pod: dict[str, Any]) -> float:
    made = timestamp(pod["metadata"]["creationTimestamp"])
    return time.time() - made.timestamp() if made is not None else 0.0
