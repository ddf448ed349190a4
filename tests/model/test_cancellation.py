"""A client that goes away, on the real engine."""

import json
from typing import Any

import httpx
import pytest

from zerolayer_dev.testing.waiting import wait_for

LONG = {"max_tokens": 2000, "messages": [{"role": "user", "content": "Tell me a very long story."}]}


def running(worker: Any) -> int:
    lines = [
        line for line in worker.metrics().splitlines() if line.startswith("zero_layer_requests_running ")
    ]
    return int(float(lines[0].split()[1]))


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_frees_its_slot(worker_process: Any, stream: bool) -> None:
    body = {**LONG, "model": worker_process.model, "stream": stream}
    timeout = httpx.Timeout(60) if stream else httpx.Timeout(60, read=3)
    with httpx.Client(base_url=worker_process.url, timeout=timeout) as client:
        if stream:
            with client.stream("POST", "/v1/messages", json=body) as response:
                texts = (line for line in response.iter_lines() if "text_delta" in line)
                assert json.loads(next(texts).removeprefix("data: "))["delta"]["text"]
                assert running(worker_process) == 1
        else:
            with pytest.raises(httpx.ReadTimeout):
                client.post("/v1/messages", json=body)
    wait_for(
        lambda: running(worker_process), until=lambda count: count == 0, what="the slot is free", seconds=10
    )
