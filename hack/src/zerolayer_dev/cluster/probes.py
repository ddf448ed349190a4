"""Tells whether a component answers, without third-party imports and without waiting long."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zerolayer_dev.cluster.plan import Probe

_TIMEOUT_S = 0.5


def is_ready(probe: Probe | None) -> bool:
    """Tell whether what a probe describes is ready now; no probe is always ready."""
    if probe is None:
        return True
    return {"tcp": _tcp, "socket": _socket, "https": _https, "exit": _never}[probe.kind](probe)


def _tcp(probe: Probe) -> bool:
    host, _, port = probe.target.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _TIMEOUT_S).close()
    except OSError:
        return False
    return True


def _socket(probe: Probe) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_TIMEOUT_S)
        return client.connect_ex(probe.target) == 0


def _https(probe: Probe) -> bool:
    try:
        with urllib.request.urlopen(probe.target, timeout=_TIMEOUT_S, context=_trust(probe.ca)) as answer:  # noqa: S310 - the plan's own URL
            return answer.status == 200  # noqa: PLR2004 - HTTP's OK
    except (urllib.error.URLError, OSError):
        return False


def _never(_: Probe) -> bool:
    return False  # a task is ready by ending, which the supervisor sees


@cache
def _trust(ca: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca)
