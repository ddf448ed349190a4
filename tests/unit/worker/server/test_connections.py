from zerolayer_worker.server import limits
from zerolayer_worker.server.connections import build_server

LONGEST_POOL_S = 90
"""Seconds for which Go's HTTP client, and so Traefik, keeps an idle connection: the longest usual ones."""


async def no_app(*_: object) -> None:
    """Answers nothing."""


def test_clients_give_up_idle_connections_before_a_worker_does() -> None:
    """Else a request meets a connection that is just being closed, and a gateway answers 502."""
    assert build_server(no_app).config.timeout_keep_alive == limits.KEEP_ALIVE_S > LONGEST_POOL_S
