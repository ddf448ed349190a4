"""Bodies that are wrong in some place: an answer or an error in the protocol's own shape, never a fault."""

import asyncio
import json
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from zerolayer_dev.testing.fuzzed_bodies import BODIES, fuzzed
from zerolayer_worker.server.app import serving_app
from zerolayer_worker.server.context import Serving
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.metrics import Metrics

pytestmark = pytest.mark.promise("protocol")

MESSAGES_ERROR: TypeAdapter[Any] = TypeAdapter(anthropic.types.ErrorResponse)
OPENAI_ERROR: TypeAdapter[Any] = TypeAdapter(openai.types.ErrorObject)
STATUSES = {200, 400, 404, 413}


class Asgi:
    """Calls the application without a socket."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._runner = asyncio.Runner()

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        return self._runner.run(self._post(path, body))

    def close(self) -> None:
        self._runner.close()

    async def _post(self, path: str, body: bytes) -> tuple[int, bytes]:
        status, sent, asked = 0, b"", False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                await asyncio.Event().wait()
            asked = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status, sent
            status = message.get("status", status)
            sent += message.get("body", b"")

        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("testserver", 80),
            "client": ("testclient", 1),
            "root_path": "",
        }
        await self._app(scope, receive, send)
        return status, sent


class Faults(logging.Handler):
    """Tracebacks, and whatever else is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


@pytest.fixture
def asgi(engine: Any) -> Iterator[Asgi]:
    lifecycle = Lifecycle(30)
    lifecycle.loaded(engine, {})
    client = Asgi(serving_app(Serving(engine, lifecycle, Metrics(lifecycle))))
    yield client
    client.close()


@pytest.fixture
def faults() -> Iterator[Faults]:
    handler = Faults()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def check_shape(path: str, status: int, sent: bytes) -> None:
    """An error is what the protocol's own SDK calls one, and says something."""
    error = json.loads(sent)
    if path.startswith("/v1/messages"):
        assert error["type"] == "error"
        assert error["request_id"].startswith("req_")
        MESSAGES_ERROR.validate_python(error)
        assert set(error["error"]) == {"type", "message"}
    else:
        OPENAI_ERROR.validate_python(error["error"])
        assert set(error["error"]) == {"type", "message", "param", "code"}
    assert error["error"]["message"].strip()
    assert b"Traceback" not in sent


def fuzz(asgi: Asgi, faults: Faults, figures: Callable[..., None], count: int) -> None:
    statuses: Counter[int] = Counter()

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(path=st.sampled_from(sorted(BODIES)), seed=st.integers(0, 2**48))
    def ask(path: str, seed: int) -> None:
        body = fuzzed(random.Random(seed), path)
        status, sent = asgi.post(path, body)
        statuses[status] += 1
        assert status in STATUSES, (path, body)
        if status != 200:
            check_shape(path, status, sent)
        assert faults.seen == [], (path, body)

    ask()
    figures(bodies=statuses.total(), **{f"status_{status}": n for status, n in sorted(statuses.items())})
    assert statuses.total() >= count
    assert statuses[200] > count / 20


def test_some_fuzzed_bodies(asgi: Asgi, faults: Faults, figures: Callable[..., None]) -> None:
    """2 000 fuzzed bodies: no 5xx, no traceback, every error in the shape of its protocol."""
    fuzz(asgi, faults, figures, 2000)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_ten_thousand_fuzzed_bodies(asgi: Asgi, faults: Faults, figures: Callable[..., None]) -> None:
    """10 000 fuzzed bodies: no 5xx, no traceback, every error in the shape of its protocol."""
    fuzz(asgi, faults, figures, 10_000)
