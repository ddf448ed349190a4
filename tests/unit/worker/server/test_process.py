"""The whole process with a scripted engine: start-up, signals, drain, exit codes."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
SCRIPT = f"""
import asyncio, importlib.util, sys, threading
from pathlib import Path
spec = importlib.util.spec_from_file_location("scripted", {str(CONFTEST)!r})
scripted = importlib.util.module_from_spec(spec)
sys.modules["scripted"] = scripted
spec.loader.exec_module(scripted)
from zerolayer_worker.common.anchor import BundleError, BundleReason
from zerolayer_worker.common.logs import configure_logging
from zerolayer_worker.config import WorkerConfig
from zerolayer_worker.engine.config import ContextLengthError
from zerolayer_worker.engine.warmup import WarmupError
from zerolayer_worker.server import limits, process
folder, port, ops_port, drain_seconds, grace, behaviour = sys.argv[1:]
limits.DRAIN_GRACE_S = float(grace)
configure_logging("info")

def load(config, on_stage):
    on_stage("compile")
    if behaviour == "missing":
        raise FileNotFoundError("model.safetensors is not there")
    if behaviour == "too-long":
        raise ContextLengthError("max_model_len 9 exceeds the model's own maximum of 8")
    if behaviour == "unsettled":
        raise WarmupError("latency did not settle within 600 s")
    if behaviour == "broken":
        raise FloatingPointError("the model's scores are not numbers")
    if behaviour == "anchor":
        raise BundleError(BundleReason.DIGEST_MISMATCH, "the file was changed")
    if behaviour == "fault":
        raise KeyError("a fault of ours")
    if behaviour == "slow":
        threading.Event().wait(60)
    engine = scripted.FakeEngine()
    if behaviour == "endless":
        engine.gate.clear()
    if behaviour == "brief":
        engine.gate.clear()
        engine.generate = brief(engine)
    return engine

def brief(engine):
    original = engine.generate
    async def generate(request):
        asyncio.get_running_loop().call_later(1.0, engine.gate.set)
        async for event in original(request):
            yield event
    return generate

config = WorkerConfig(
    model_path=Path(folder), host="127.0.0.1", port=int(port), ops_port=int(ops_port),
    drain_seconds=float(drain_seconds), model_name="fake-model", revision="abc",
)
code = process.serve(config, load)
import logging, os
logging.shutdown()
os._exit(code)
"""
BODY = {"model": "fake-model", "max_tokens": 20, "messages": [{"role": "user", "content": "hi"}]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Worker:
    """One process under test."""

    def __init__(
        self, folder: Path, behaviour: str, *, drain_seconds: float, grace: float, port: int | None
    ) -> None:
        self.port = port or free_port()
        self.ops_port = free_port()
        self.log = folder / "log"
        argv = [str(folder), str(self.port), str(self.ops_port), str(drain_seconds), str(grace), behaviour]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-c", SCRIPT, *argv], stderr=log)

    def ops(self, path: str) -> int:
        try:
            return httpx.get(f"http://127.0.0.1:{self.ops_port}{path}", timeout=30).status_code
        except httpx.TransportError:
            return 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def wait(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)

    def until_ready(self) -> "Worker":
        self.wait(lambda: self.ops("/readyz") == 200)
        return self

    def begin(self, *, stream: bool) -> tuple[http.client.HTTPConnection, Any]:
        """Sends a request, and for a stream reads its headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = json.dumps({**BODY, "stream": stream})
        connection.request("POST", "/v1/messages", body, {"content-type": "application/json"})
        self.wait(lambda: self.in_flight() == 1)
        return connection, connection.getresponse() if stream else None

    def ask(self) -> httpx.Response:
        """A request on a connection of its own."""
        return httpx.post(self.url("/v1/messages"), json=BODY, timeout=30)

    def in_flight(self) -> int:
        return int(self.metric("zero_layer_http_requests_in_flight"))

    def metric(self, name: str) -> float:
        text = httpx.get(f"http://127.0.0.1:{self.ops_port}/metrics", timeout=30).text
        lines = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(lines[0].split()[1]) if lines else 0.0

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        os.kill(self.process.pid, number)

    def exit_code(self, seconds: float = 60) -> int:
        return self.process.wait(seconds)

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    workers: list[Worker] = []

    def begin(
        behaviour: str = "normal", *, drain_seconds: float = 20, grace: float = 0.2, port: int | None = None
    ) -> Worker:
        workers.append(Worker(tmp_path, behaviour, drain_seconds=drain_seconds, grace=grace, port=port))
        return workers[-1]

    yield begin
    for worker in workers:
        if worker.process.poll() is None:
            worker.process.kill()
        worker.process.wait()


def test_the_operations_port_answers_while_the_model_loads(start: Any) -> None:
    worker = start("slow")
    worker.wait(lambda: worker.ops("/healthz") == 200)
    assert (worker.ops("/startupz"), worker.ops("/readyz"), worker.ops("/version")) == (503, 503, 200)
    with pytest.raises(httpx.ConnectError):
        httpx.get(worker.url("/v1/models"))
    worker.signal()
    assert worker.exit_code(20) == 0


@pytest.mark.parametrize(
    ("behaviour", "named", "traceback"),
    [
        ("missing", "--model-path", False),
        ("too-long", "lower --max-model-len, or", False),
        ("unsettled", "--warmup-timeout-seconds", False),
        ("broken", "the weights are broken", False),
        ("fault", "report it", True),
    ],
)
def test_a_model_that_does_not_load_ends_the_process(
    start: Any, behaviour: str, named: str, traceback: bool
) -> None:
    worker = start(behaviour)
    assert worker.exit_code() == 1
    errors = [line for line in worker.logged() if line["level"] == "error"]
    assert len(errors) == 1
    assert errors[0]["stage"] == "compile"
    assert named in errors[0]["remedy"]
    assert ("exception" in errors[0]) is traceback


def test_a_refused_anchor_is_a_configuration_that_cannot_be_used(start: Any) -> None:
    worker = start("anchor")
    assert worker.exit_code() == 2
    (error,) = (line for line in worker.logged() if line["level"] == "error")
    assert error["message"] == "the configuration is refused: AnchorDigestMismatch: the file was changed"
    assert error["reason"] == "AnchorDigestMismatch"


def test_a_taken_port_ends_the_process_before_anything_is_loaded(start: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        worker = start(port=taken.getsockname()[1])
        assert worker.exit_code() == 1
    assert "--port" in worker.log.read_text()
    assert "start-up" not in worker.log.read_text()


def test_keys_that_are_none_are_told_before_the_first_request(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "alice").write_text("sk-one\nsk-two\n")
    monkeypatch.setenv("ZEROLAYER_API_KEY_DIR", str(keys))
    worker = start().until_ready()
    assert worker.metric("zero_layer_api_key_faults") == 1
    assert worker.ask().status_code == 401
    errors = [line["message"] for line in worker.logged() if line["level"] == "error"]
    assert errors[0].startswith("an API key is not up to date: alice holds several lines")
    assert "sk-" not in worker.log.read_text()


def test_an_idle_worker_that_was_told_to_end_still_answers_while_endpoints_name_it(start: Any) -> None:
    worker = start(grace=60, drain_seconds=90).until_ready()
    worker.signal()
    worker.wait(lambda: worker.ops("/readyz") == 503)
    enough = time.monotonic() + 1  # uvicorn needs 0.1 s to close its port
    while time.monotonic() < enough:
        answer = worker.ask()
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")


def test_an_idle_worker_stops_at_once_on_sigint(start: Any) -> None:
    worker = start(grace=60, drain_seconds=90).until_ready()
    worker.signal(signal.SIGINT)
    assert worker.exit_code(20) == 0


def test_an_idle_worker_stops_after_its_grace_whatever_connections_are_open(start: Any) -> None:
    worker = start().until_ready()
    client = httpx.Client(timeout=30)
    assert client.post(worker.url("/v1/messages"), json=BODY).headers["x-zero-layer-revision"] == "abc"
    worker.signal()
    assert worker.exit_code(10) == 0
    client.close()


def test_what_was_accepted_is_answered_before_the_process_ends(start: Any) -> None:
    worker = start("brief").until_ready()
    streaming, response = worker.begin(stream=True)
    worker.signal()
    text = response.read().decode()
    assert "message_stop" in text
    assert "error" not in text
    assert worker.exit_code() == 0
    streaming.close()


def test_a_draining_worker_answers_new_connections(start: Any) -> None:
    worker = start().until_ready()
    drain = subprocess.Popen(
        [sys.executable, "-m", "zerolayer_worker.cli", "drain", "--ops-port", str(worker.ops_port)],
        stderr=subprocess.DEVNULL,
    )
    worker.wait(lambda: worker.ops("/readyz") == 503)
    answer = worker.ask()
    assert (answer.status_code, answer.headers["connection"]) == (200, "close")
    assert drain.wait(60) == 0
    assert worker.ask().status_code == 200
    worker.signal()
    assert worker.exit_code(10) == 0


def test_what_is_open_when_time_is_up_ends_with_an_error(start: Any) -> None:
    worker = start("endless", drain_seconds=0.5).until_ready()
    streaming, response = worker.begin(stream=True)
    worker.signal()
    text = response.read().decode()
    assert "event: error" in text
    assert "shutting down" in text
    assert worker.exit_code() == 0
    assert any(line["message"].startswith("the drain's time is over") for line in worker.logged())
    streaming.close()


def test_the_same_for_an_answer_that_does_not_stream(start: Any) -> None:
    worker = start("endless", drain_seconds=0.5).until_ready()
    connection, _ = worker.begin(stream=False)
    worker.signal()
    response = connection.getresponse()
    assert (response.status, response.headers["retry-after"]) == (503, "1")
    assert b"shutting down" in response.read()
    assert worker.exit_code() == 0
    connection.close()


def test_a_second_signal_ends_the_process_now(start: Any) -> None:
    worker = start("endless").until_ready()
    connection, _ = worker.begin(stream=False)
    worker.signal()
    worker.wait(lambda: worker.ops("/readyz") == 503)
    worker.signal()
    assert worker.exit_code(10) == 128 + signal.SIGTERM
    connection.close()
