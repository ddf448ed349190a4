"""The server's process: both ports, loading, signals, drain, exit code."""

import asyncio
import logging
import os
import signal
import socket
import threading
from typing import Final

from starlette.types import ASGIApp

from zerolayer_worker.config import WorkerConfig
from zerolayer_worker.engine.api import Engine
from zerolayer_worker.server import limits
from zerolayer_worker.server.app import serving_app
from zerolayer_worker.server.auth import KeyRing
from zerolayer_worker.server.connections import Server, bind, build_server
from zerolayer_worker.server.context import Serving
from zerolayer_worker.server.intent_policy import IntentPolicy
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.loading import LoadedEngine, Loader, NotLoadedError, load_in_thread
from zerolayer_worker.server.metrics import Metrics
from zerolayer_worker.server.ops import ops_app
from zerolayer_worker.server.tracing import start_tracing

_log = logging.getLogger(__name__)
FINAL_WRITES_S: Final = 2.0
"""Seconds that answers cut off at the end of a drain get to reach their clients."""

CLOSE_S: Final = 5.0
"""Seconds the engine gets to end its current step."""


def serve(config: WorkerConfig, load: Loader) -> int:
    """Serves until SIGTERM or SIGINT.

    Args:
        config: validated.
        load: builds and warms up the engine; called in a thread.

    Returns:
        The process' exit code: 0 after a drain, 1 where a port is taken or the model did not load, 2 where
        its anchor or adapter is refused.
    """
    return asyncio.run(Process(config, load).run())


class Process:
    """One run of the server."""

    def __init__(self, config: WorkerConfig, load: Loader) -> None:
        self._config = config
        self._load = load
        self._signal: signal.Signals | None = None

    async def run(self) -> int:
        """Runs until stopped and returns the exit code."""
        try:
            ops_socket = bind(self._config.host, self._config.ops_port)
            http_socket = bind(self._config.host, self._config.port)
        except OSError as error:
            _log.error(
                "a port can't be opened: choose others with --port and --ops-port",
                extra={"cause": str(error)},
            )
            return 1
        lifecycle = Lifecycle(self._config.drain_seconds)
        metrics = Metrics(lifecycle)
        stop = self._watch_signals()
        ops = build_server(self._ops(lifecycle, metrics))
        ops_task = asyncio.create_task(ops.serve(sockets=[ops_socket]))
        try:
            engine = await load_in_thread(self._config, self._load, lifecycle, stop)
            if engine is None:
                return 0
            lifecycle.loaded(engine, engine.stages)
            for stage, seconds in engine.stages.items():
                metrics.warmup.labels(stage).set(seconds)
            serving = self._serving(engine, lifecycle, metrics)
            await self._serve(serving, http_socket, stop)
            _close(engine)
            await asyncio.to_thread(serving.tracing.close)
        except NotLoadedError as error:
            return error.exit_code
        finally:
            ops.should_exit = True
            ops.force_exit = True
            # A probe's or scraper's idle connection is no reason to stay.
            await asyncio.wait({ops_task}, timeout=FINAL_WRITES_S)
        return 0

    def _ops(self, lifecycle: Lifecycle, metrics: Metrics) -> ASGIApp:
        config = self._config
        return ops_app(lifecycle, metrics, revision=config.revision, admin_key_file=config.admin_key_file)

    def _serving(self, engine: Engine, lifecycle: Lifecycle, metrics: Metrics) -> Serving:
        config = self._config
        return Serving(
            engine=engine,
            lifecycle=lifecycle,
            metrics=metrics,
            policy=IntentPolicy(config.default_intent, config.allowed_intents),
            keys=self._keys(metrics),
            revision=config.revision,
            tracing=start_tracing(),
        )

    def _keys(self, metrics: Metrics) -> KeyRing | None:
        """Read at once: what is wrong with them is to be seen before the first request is refused."""
        if self._config.api_key_dir is None:
            return None
        keys = KeyRing(self._config.api_key_dir, on_faults=metrics.key_faults.set)
        keys.refresh()
        return keys

    def _watch_signals(self) -> asyncio.Event:
        """The first SIGTERM or SIGINT starts the drain, the second ends the process where it stands."""
        stop = asyncio.Event()

        def on_signal(number: signal.Signals) -> None:
            if stop.is_set():
                _log.warning("second signal: exiting now", extra={"signal": number.name})
                os._exit(128 + number)
            _log.info("draining", extra={"signal": number.name})
            self._signal = number
            stop.set()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal, number)
        return stop

    async def _serve(self, serving: Serving, listener: socket.socket, stop: asyncio.Event) -> None:
        lifecycle = serving.lifecycle
        server = build_server(serving_app(serving), serving.identity)
        server_task = asyncio.create_task(server.serve(sockets=[listener]))
        idle_task = asyncio.create_task(_close_idle(server, lifecycle))
        await stop.wait()
        await _finish(server, server_task, lifecycle, graceful=self._signal is not signal.SIGINT)
        idle_task.cancel()


def _close(engine: LoadedEngine) -> None:
    """Closes the engine, but does not wait for a step that hangs."""
    thread = threading.Thread(target=engine.close, name="close", daemon=True)
    thread.start()
    thread.join(CLOSE_S)


async def _close_idle(server: Server, lifecycle: Lifecycle) -> None:
    """During a drain, closes connections that no client has used for a while."""
    while True:
        await asyncio.sleep(0.5)
        if lifecycle.draining:
            server.close_idle(limits.DRAIN_GRACE_S)


async def _finish(
    server: Server, server_task: asyncio.Task[None], lifecycle: Lifecycle, *, graceful: bool
) -> None:
    """Answers what was accepted, refuses what comes late, and cuts off what is open when time is up.

    New connections are still answered until the drain has lasted its grace: endpoints may name this worker
    that long. Where the drain began before the signal, in the pod's preStop hook, that is over and the port
    closes at once; so it does on SIGINT, after which somebody waits at a terminal.
    """
    lifecycle.begin_drain()
    await asyncio.sleep(lifecycle.grace_left() if graceful else 0)
    server.should_exit = True
    drained = await lifecycle.answered()
    if not drained:
        _log.warning("the drain's time is over: ending what is open", extra={"open": lifecycle.in_flight})
        lifecycle.cut_off()
    done, _ = await asyncio.wait({server_task}, timeout=FINAL_WRITES_S)
    if not done:
        server.force_exit = True
        await asyncio.wait({server_task}, timeout=FINAL_WRITES_S)
    _log.info("stopped", extra={"drained": drained})
