"""Unix sockets whose path may be longer than the 107 bytes that an address can hold."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield an address of the path by way of an open descriptor of its folder."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listen(path: Path) -> socket.socket:
    """Return a socket that listens at a path; whatever lay there is removed."""
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    with _short(path) as address:
        server.bind(address)
    server.listen()
    return server


def connect(path: Path, timeout_s: float) -> socket.socket:
    """Return a connection to the socket at a path.

    Args:
        path: of the socket.
        timeout_s: for connecting and for each read and write, in seconds.

    Raises:
        OSError: nobody listens there.
    """
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(timeout_s)
    try:
        with _short(path) as address:
            client.connect(address)
    except BaseException:
        client.close()
        raise
    return client
