"""Ports for servers that can't choose one themselves."""

import socket


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a port on which nothing listens at the moment."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
