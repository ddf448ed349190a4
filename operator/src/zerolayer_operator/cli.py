"""The process `zerolayer-operator`: settings, logs, probes, the Lease, and then kopf.

Heavy modules are imported where they are first needed: a standby runs without kopf.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, NoReturn

from pydantic import ValidationError

from zerolayer_operator import logs, metrics
from zerolayer_operator.health import Heartbeat
from zerolayer_operator.lease import Elector, LeaseLostError, LeaseUnavailableError, Timing
from zerolayer_operator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from kubernetes.aio.client.api_client import ApiClient

logger = logging.getLogger(__name__)

EXIT_BAD_SETTINGS = 2
EXIT_LEASE_LOST = 3
WAIT_FOR_DEFINITION_S = 2.0


def main(arguments: "Sequence[str] | None" = None) -> None:
    """Runs the operator until it is told to stop.

    Exit codes: 0 after SIGTERM or SIGINT, 2 for bad settings, 3 for a lost Lease, 1 for everything else.
    """
    _parser().parse_args(arguments)
    try:
        settings = Settings()  # pyright: ignore[reportCallIssue] - filled from the environment
    except ValidationError as error:
        sys.stderr.write(f"zerolayer-operator: {describe(error)}\n")
        sys.exit(EXIT_BAD_SETTINGS)
    logs.configure(settings.log_level)
    asyncio.run(run(settings))


def describe(error: ValidationError) -> str:
    """Names every bad environment variable and what is wrong with it, in one line."""
    prefix = Settings.model_config.get("env_prefix", "")
    problems = (
        f"{prefix}{str(item['loc'][0]).upper()}: {item['msg'][:1].lower()}{item['msg'][1:]}"
        for item in error.errors(include_url=False, include_input=False)
    )
    return "bad settings: " + "; ".join(problems)


async def run(settings: Settings) -> None:
    """Serves probes, waits for the Lease, and then runs kopf for as long as the Lease is held."""
    from zerolayer_operator.connect import connect  # noqa: PLC0415
    from zerolayer_operator.lease_store import KubernetesLeaseStore  # noqa: PLC0415
    from zerolayer_operator.serve import probes_and_metrics  # noqa: PLC0415

    heartbeat = Heartbeat(settings.resync_interval_s, settings.lease_duration_s)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def on_round(reached: bool) -> None:
        heartbeat.beat("lease")
        if reached and heartbeat.role == "starting":
            heartbeat.become("standby")

    async with probes_and_metrics(settings, heartbeat), connect() as client:
        if not await _first(_defined(client, settings, heartbeat), stop):
            return
        store = KubernetesLeaseStore(client, settings.pod_namespace, settings.lease_name)
        elector = Elector(store, settings.pod_name, Timing(settings.lease_duration_s), on_round=on_round)
        if await _first(elector.acquire(), stop):
            await _lead(settings, heartbeat, elector, client, stop)
            metrics.LEADER.set(0)
            await _give_back(elector)
    logger.info("stopped")


async def _defined(client: "ApiClient", settings: Settings, heartbeat: Heartbeat) -> None:
    """Returns once the cluster knows ZeroLayerPools: kopf looks for what it watches only when it starts."""
    from zerolayer_operator.api.kinds import POOL  # noqa: PLC0415
    from zerolayer_operator.kube import NOT_FOUND, ApiServerError, Kube  # noqa: PLC0415

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
    settings: Settings, heartbeat: Heartbeat, elector: Elector, client: "ApiClient", stop: asyncio.Event
) -> None:
    """Runs kopf until it is stopped; without the Lease the process ends on the spot."""
    import kopf  # noqa: PLC0415

    from zerolayer_operator.main import build_registry  # noqa: PLC0415
    from zerolayer_operator.reconcile import Reconciler  # noqa: PLC0415

    heartbeat.become("leading")
    metrics.LEADER.set(1)
    registry = build_registry(Reconciler(client, settings, heartbeat), settings)
    # Before kopf: it cancels every task younger than itself when it stops.
    holding = asyncio.create_task(elector.hold(), name="hold the Lease")
    serving = asyncio.create_task(
        kopf.operator(
            registry=registry,
            standalone=True,
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


async def _first(wanted: "Coroutine[None, None, None]", stop: asyncio.Event) -> bool:
    """Whether `wanted` ended before `stop` was set; it is cancelled if it did not."""
    task, stopped = asyncio.create_task(wanted), asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    for pending in (task, stopped):
        pending.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return task.done() and not task.cancelled()


def _parser() -> argparse.ArgumentParser:
    """A command line without options of its own; `--help` lists the environment variables."""
    prefix = Settings.model_config.get("env_prefix", "")
    lines = [
        f"  {prefix}{name.upper()}\n      {field.description}"
        for name, field in Settings.model_fields.items()
    ]
    parser = argparse.ArgumentParser(
        prog="zerolayer-operator",
        description="Turns ZeroLayerPools into running inference workers.\n\nenvironment:\n"
        + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version("zerolayer-operator"))
    return parser


if __name__ == "__main__":
    main()
