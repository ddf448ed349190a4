import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from zerolayer_dev.testing.load import EVERY_KIND, Client, Load
from zerolayer_dev.testing.waiting import wait_for

COMPLETE = [
    {"type": "message_start"},
    {"type": "message_delta", "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]
WHOLE = {"stop_reason": "end_turn", "usage": {"output_tokens": 3}}


class Worker(ThreadingHTTPServer):
    """Answers with what the test set; `connections` counts accepted ones."""

    daemon_threads = True
    status = 200
    whole: dict[str, object] = WHOLE
    events = COMPLETE
    connections = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Worker

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = json.dumps(self.server.whole)
        if body["stream"] and self.server.status == 200:
            answer = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in self.server.events)
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def serving(port: int) -> Iterator[Worker]:
    with Worker(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def worker() -> Iterator[Worker]:
    with serving(port=0) as server:
        yield server


def load_of(worker: Worker, *clients: Client, retry_refused: bool = False) -> Load:
    url = f"http://127.0.0.1:{worker.server_port}"
    return Load(url, model="m", clients=clients or EVERY_KIND, retry_refused=retry_refused)


def test_every_kind_of_client_asks_until_the_block_ends(worker: Worker) -> None:
    with load_of(worker) as load:
        load.wait_for_more(40, seconds=20)

    assert load.failures == []
    assert load.in_flight() == 0
    assert {attempt.client for attempt in load.attempts} == set(EVERY_KIND)
    assert {attempt.tokens for attempt in load.attempts} == {3}


def test_keep_alive_uses_one_connection_and_fresh_one_per_request(worker: Worker) -> None:
    with load_of(worker, Client(streams=False, keeps_alive=True)) as kept:
        kept.wait_for_more(10, seconds=20)
    after_kept = worker.connections
    with load_of(worker, Client(streams=False, keeps_alive=False)) as fresh:
        fresh.wait_for_more(10, seconds=20)

    assert after_kept == 1
    assert worker.connections - after_kept == len(fresh.attempts)


@pytest.mark.parametrize(
    ("fault", "value", "streams", "message"),
    [
        ("status", 503, False, "status 503"),
        ("status", 429, True, "status 429"),
        ("whole", {"stop_reason": None, "usage": {}}, False, "no stop reason"),
        ("events", COMPLETE[:-1], True, "stream truncated after 2 events"),
        ("events", [{"type": "error", "error": {}}], True, "stream ended with"),
    ],
)
def test_incomplete_answers_are_failures(
    worker: Worker, fault: str, value: object, streams: bool, message: str
) -> None:
    setattr(worker, fault, value)

    with load_of(worker, Client(streams=streams, keeps_alive=True)) as load:
        load.wait_for_more(1, seconds=20)

    assert message in load.failures[0]


def test_refused_connection_is_a_failure_unless_retried() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with Load(url, model="m", clients=[Client(streams=False, keeps_alive=False)]) as load:
            load.wait_for_more(1, seconds=20)

    assert "never connected" in load.failures[0]


def test_retried_connections_are_counted(worker: Worker) -> None:
    reserved = socket.socket()
    reserved.bind(("127.0.0.1", 0))
    port = reserved.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with ExitStack() as servers:  # noqa: SIM117  the servers outlive the load
        with Load(
            url, model="m", clients=[Client(streams=False, keeps_alive=False)], retry_refused=True
        ) as load:
            wait_for(load.in_flight, what="a first try", seconds=20)
            reserved.close()
            servers.enter_context(serving(port))
            load.wait_for_more(1, seconds=20)

    assert load.failures == []
    assert load.attempts[0].refused > 0
