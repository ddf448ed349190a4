"""The operations port: probes, metrics, version and drain. It listens before the model is loaded."""

import ipaddress
import logging
import secrets
from dataclasses import asdict
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from zerolayer_worker.engine.api import EngineStats
from zerolayer_worker.server.auth import KeyFormError, parse_key, presented_key, sent_bytes
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.metrics import Metrics

_log = logging.getLogger(__name__)
STALLED_S: Final = 120.0
"""Seconds without a turn of the engine's loop, while it has work, after which the worker counts as dead.
One step is one chunk of a prompt at most, which takes seconds on a slow CPU."""


class OpsRoutes:
    """The endpoints."""

    def __init__(
        self, lifecycle: Lifecycle, metrics: Metrics, *, revision: str, admin_key_file: Path | None
    ) -> None:
        self._lifecycle = lifecycle
        self._metrics = metrics
        self._revision = revision
        self._admin_key_file = admin_key_file

    async def health(self, request: Request) -> JSONResponse:  # noqa: ARG002
        """Liveness: the engine's loop turns. Loading is the startup probe's business."""
        engine = self._lifecycle.engine
        if engine is None:
            return JSONResponse({"alive": True, "stage": self._lifecycle.stage})
        stats = engine.stats()
        alive = _moves(stats)
        body = {
            "alive": alive,
            "steps": stats.steps,
            "idle": stats.idle,
            "lastStepAge": stats.last_step_age_s,
        }
        return JSONResponse(body, status_code=200 if alive else 503)

    async def startup(self, request: Request) -> JSONResponse:  # noqa: ARG002
        """Whether start-up is over, and how long its stages took."""
        if self._lifecycle.engine is None:
            return JSONResponse({"ready": False, "stage": self._lifecycle.stage}, status_code=503)
        return JSONResponse({"ready": True, "stages": dict(self._lifecycle.stages)})

    async def ready(self, request: Request) -> JSONResponse:  # noqa: ARG002
        """Whether new requests should come here; a full queue does not change that, 429 says it."""
        reason = self._unready()
        if reason is None:
            return JSONResponse({"ready": True})
        return JSONResponse({"ready": False, "reason": reason}, status_code=503)

    def _unready(self) -> str | None:
        engine = self._lifecycle.engine
        if self._lifecycle.draining:
            return "draining"
        if engine is None:
            return self._lifecycle.stage
        return None if _moves(engine.stats()) else "the engine's loop stands still"

    async def metrics(self, request: Request) -> Response:  # noqa: ARG002
        """Prometheus' text format."""
        return Response(generate_latest(self._metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def version(self, request: Request) -> JSONResponse:  # noqa: ARG002
        """What exactly runs here."""
        engine = self._lifecycle.engine
        info = engine.info if engine is not None else None
        return JSONResponse(
            {
                "version": installed_version("zerolayer-worker"),
                "revision": self._revision,
                "model": {"name": info.name, "digest": info.digest, "dtype": info.dtype} if info else None,
                "anchor": asdict(info.anchor) if info and info.anchor else None,
                "lora": info.lora if info else None,
                "engine": "zerolayer",
                "kernels": info.kernels if info else None,
                "router": info.router if info else None,
                "fingerprint": engine.fingerprint if engine is not None else None,
                "torch": installed_version("torch"),
                "device": info.device if info else None,
            }
        )

    async def drain(self, request: Request) -> JSONResponse:
        """Starts the drain and returns when it is over; from loopback or with the admin key only."""
        if not self._may_drain(request):
            return JSONResponse(
                {"error": "drain needs the loopback address or the admin key"}, status_code=403
            )
        drained = await self._lifecycle.drain()
        return JSONResponse({"drained": drained, "inFlight": self._lifecycle.in_flight})

    def _may_drain(self, request: Request) -> bool:
        if request.client is not None and is_loopback(request.client.host):
            return True
        key = presented_key(request.headers)
        if self._admin_key_file is None or key is None:
            return False
        try:
            admin_key = parse_key(self._admin_key_file.read_bytes())
        except (OSError, KeyFormError) as error:
            cause = error.strerror if isinstance(error, OSError) else str(error)
            _log.error(
                "the admin key can't be used", extra={"file": str(self._admin_key_file), "cause": cause}
            )
            return False
        return secrets.compare_digest(sent_bytes(key), admin_key)


def _moves(stats: EngineStats) -> bool:
    return stats.last_step_age_s < STALLED_S


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's, also where IPv4 arrives mapped into IPv6."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def ops_app(
    lifecycle: Lifecycle, metrics: Metrics, *, revision: str = "", admin_key_file: Path | None = None
) -> Starlette:
    """Builds the application."""
    ops = OpsRoutes(lifecycle, metrics, revision=revision, admin_key_file=admin_key_file)
    return Starlette(
        routes=[
            Route("/healthz", ops.health),
            Route("/startupz", ops.startup),
            Route("/readyz", ops.ready),
            Route("/metrics", ops.metrics),
            Route("/version", ops.version),
            Route("/drain", ops.drain, methods=["POST"]),
        ]
    )
