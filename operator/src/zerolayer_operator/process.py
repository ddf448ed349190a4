"""The operator as a process: probes and metrics first, then the Lease, then kopf for as long as it is held.

Everything is imported before the Lease is held: an import stops the event loop that has to renew it.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, NoReturn, cast

import kopf
from kubernetes.aio.client.api_client import ApiClient
from prometheus_client import REGISTRY

from zerolayer_operator import metrics
from zerolayer_operator.api.kinds import POOL
from zerolayer_operator.connect import connect
from zerolayer_operator.health import Heartbeat
from zerolayer_operator.kube import NOT_FOUND, ApiServerError, Kube
from zerolayer_operator.lease import Elector, LeaseLostError, LeaseUnavailableError, Timing
from zerolayer_operator.lease_store import KubernetesLeaseStore
from zerolayer_operator.main import build_registry
from zerolayer_operator.page.history import History
from zerolayer_operator.page.server import HOST, page_app
from zerolayer_operator.pool_metrics import PoolMetrics
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.serve import probes_and_metrics, served
from zerolayer_operator.settings import Settings

logger = logging.getLogger(__name__)

EXIT_LEASE_LOST = 3
WAIT_FOR_DEFINITION_S = 2.0


async def run(settings: Settings) -> None:
    """Serves probes, waits for the Lease, and then runs kopf for as long as the Lease is held."""
    heartbeat = Heartbeat(settings.resync_interval_s, settings.lease_duration_s)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def on_round(reached: bool) -> None:
        heartbeat.beat("lease")
        if reached and heartbeat.role == "starting":
            heartbeat.become("standby")

    async with probes_and_metrics(settings, heartbeat), connect() as client:
        store = KubernetesLeaseStore(client, settings.pod_namespace, settings.lease_name)
        elector = Elector(store, settings.pod_name, Timing(settings.lease_duration_s), on_round=on_round)
        history = History()
        async with _page(settings, history, elector):
            if not await _first(_defined(client, settings, heartbeat), stop):
                return
            if await _first(elector.acquire(), stop):
                await _lead(settings, heartbeat, elector, client, stop, history=history)
                metrics.LEADER.set(0)
                await _give_back(elector)
    logger.info("stopped")


@contextlib.asynccontextmanager
async def _page(settings: Settings, history: History, elector: Elector) -> AsyncGenerator[None]:
    """Serves the page where it is wanted.

    Raises:
        OSError: Its port is taken.
    """
    if not settings.page:
        yield
        return
    async with served(page_app(settings, history, lambda: elector.leader), HOST, settings.page_port):
        yield


async def _defined(client: ApiClient, settings: Settings, heartbeat: Heartbeat) -> None:
    """Returns once the cluster knows ZeroLayerPools: kopf looks for what it watches only when it starts."""
    kube = Kube(client)
    while True:
        try:
            await kube.list(POOL, next(iter(settings.namespaces), ""))
        except ApiServerError as error:
            what = "ZeroLayerPools are not defined; apply crds/" if error.status == NOT_FOUND else error
            logger.warning("waiting: %s", what)
        else:
            return
        heartbeat.beat("lease")
        await asyncio.sleep(WAIT_FOR_DEFINITION_S)


async def _lead(
    settings: Settings,
    heartbeat: Heartbeat,
    elector: Elector,
    client: ApiClient,
    stop: asyncio.Event,
    *,
    history: History,
) -> None:
    """Runs kopf until it is stopped; without the Lease the process ends on the spot."""
    heartbeat.become("leading")
    metrics.LEADER.set(1)
    pool_metrics = PoolMetrics()
    REGISTRY.register(pool_metrics)
    sinks = (pool_metrics, history) if settings.page else (pool_metrics,)
    registry = build_registry(Reconciler(client, settings, heartbeat, sinks=sinks), settings)
    # Before kopf: it cancels every task younger than itself when it stops.
    holding = asyncio.create_task(elector.hold(), name="hold the Lease")
    serving = asyncio.create_task(
        kopf.operator(
            registry=registry,
            standalone=True,
            # kopf would make one up from the name of the user, which 65532 has not; its type is private.
            identity=cast("Any", settings.pod_name),
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            stop_flag=stop,
        ),
        name="kopf",
    )
    await asyncio.wait({holding, serving}, return_when=asyncio.FIRST_COMPLETED)
    if holding.done():
        _die(holding.exception())
    holding.cancel()
    await serving


def _die(reason: BaseException | None) -> NoReturn:
    """Ends the process at once: a graceful stop would go on writing beside the next leader."""
    logger.critical("the operator ends: %s", reason)
    logging.shutdown()
    os._exit(EXIT_LEASE_LOST if isinstance(reason, LeaseLostError) else 1)


async def _give_back(elector: Elector) -> None:
    try:
        async with asyncio.timeout(2):
            await elector.release()
    except (LeaseUnavailableError, TimeoutError) as error:
        logger.warning("the Lease was not given back and will run out: %s", error or "no answer in time")


async def _first(wanted: Coroutine[None, None, None], stop: asyncio.Event) -> bool:
    """Whether `wanted` ended before `stop` was set; it is cancelled if it did not."""
    task, stopped = asyncio.create_task(wanted), asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    for pending in (task, stopped):
        pending.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return task.done() and not task.cancelled()
