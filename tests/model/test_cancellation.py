"""A client that goes away, on the real engine."""

import json
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import httpx

from zerolayer_dev.testing.waiting import wait_for

LONG = {"max_tokens": 2000, "messages": [{"role": "user", "content": "Tell me a very long story."}]}


def running(worker: Any) -> int:
    lines = [
        line for line in worker.metrics().splitlines() if line.startswith("zero_layer_requests_running ")
    ]
    return int(float(lines[0].split()[1]))


def wait_running(worker: Any, wanted: int) -> None:
    wait_for(
        lambda: running(worker),
        until=lambda count: count == wanted,
        what=f"{wanted} running",
        seconds=10,
        interval=0.01,
    )


def test_a_client_that_leaves_its_stream_frees_its_slot(worker_process: Any) -> None:
    body = {**LONG, "model": worker_process.model, "stream": True}
    with (
        httpx.Client(base_url=worker_process.url, timeout=60) as client,
        client.stream("POST", "/v1/messages", json=body) as response,
    ):
        texts = (line for line in response.iter_lines() if "text_delta" in line)
        assert json.loads(next(texts).removeprefix("data: "))["delta"]["text"]
        assert running(worker_process) == 1
    wait_running(worker_process, 0)


def test_a_client_that_does_not_wait_for_its_answer_frees_its_slot(worker_process: Any) -> None:
    url = httpx.URL(worker_process.url)
    body = json.dumps({**LONG, "model": worker_process.model})
    with closing(HTTPConnection(url.host, url.port)) as client:
        client.request("POST", "/v1/messages", body, {"content-type": "application/json"})
        wait_running(worker_process, 1)
    wait_running(worker_process, 0)
