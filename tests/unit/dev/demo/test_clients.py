"""Clients of the demo, against a server that says what it was named."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from zerolayer_dev.demo import clients
from zerolayer_dev.demo.clients import Clients
from zerolayer_dev.testing.askers import Question
from zerolayer_dev.testing.waiting import wait_for


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.named: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.named.append(self.headers.get("zero-layer-revision", ""))
        body = b'{"stop_reason": "end_turn"}'
        self.send_response(200)
        self.send_header("x-zero-layer-revision", "b1")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its own name
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def load(server: Server, **fields: int) -> Clients:
    host, port = server.server_address[:2]
    return Clients(f"http://{host!s}:{port}", Question("model"), **fields, pause_s=0.001)


def test_strangers_name_nothing(server: Server) -> None:
    with load(server, strangers=2, talkers=0) as asking:
        wait_for(lambda: len(asking.unpinned) > 10, what="answers", seconds=30)

    assert set(server.named) == {""}
    assert len(asking.answers) == len(asking.unpinned) == len(server.named)


def test_a_conversation_names_what_answered_it_and_ends(server: Server) -> None:
    with load(server, strangers=0, talkers=1) as asking:
        wait_for(lambda: len(asking.held) > 1, what="a second conversation", seconds=30)

    assert len(asking.held[0]) == clients.TURNS
    assert server.named[: clients.TURNS] == ["", *["b1"] * (clients.TURNS - 1)]
