import asyncio
from typing import Any

import pytest

from zerolayer_operator import process
from zerolayer_operator.api.kinds import POOL
from zerolayer_operator.health import Heartbeat
from zerolayer_operator.kube import ApiServerError
from zerolayer_operator.lease import Elector, LeaseUnavailableError, Timing
from zerolayer_operator.settings import Settings


class FakeKube:
    """Answers list calls with what `answers` holds, in order."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Any, str]] = []

    def __call__(self, _client: object) -> "FakeKube":
        return self

    async def list(self, kind: Any, namespace: str) -> list[Any]:
        self.asked.append((kind, namespace))
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer
        return []


@pytest.fixture
def settings() -> Settings:
    return Settings(worker_image="w:1", namespaces=("a", "b"))


async def test_cluster_without_the_definition_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    kube = FakeKube(ApiServerError(404, "the server could not find"), ApiServerError(0, "refused"), None)
    monkeypatch.setattr(process, "Kube", kube)
    monkeypatch.setattr(process, "WAIT_FOR_DEFINITION_S", 0)
    heartbeat = Heartbeat(60)
    await process._defined(object(), settings, heartbeat)
    assert kube.asked == [(POOL, "a")] * 3
    assert [record.getMessage() for record in caplog.records] == [
        "waiting: ZeroLayerPools are not defined; apply crds/",
        "waiting: refused",
    ]
    assert "lease" in heartbeat.alive().ages, "waiting is no reason to be restarted"
    assert not heartbeat.ready().ok


async def test_first_tells_what_came_first() -> None:
    async def at_once() -> None:
        return

    stop = asyncio.Event()
    assert await process._first(at_once(), stop) is True
    cancelled = asyncio.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    stop.set()
    assert await process._first(never(), stop) is False
    assert cancelled.is_set()


async def test_first_passes_errors_on() -> None:
    async def broken() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await process._first(broken(), asyncio.Event())


async def test_lease_that_cannot_be_given_back_is_only_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    class Gone:
        async def read(self) -> None:
            return None

        async def write(self, record: Any) -> Any:
            if not record.holder:
                raise LeaseUnavailableError("connection refused")
            return record

    elector = Elector(Gone(), "a", Timing())
    await elector.acquire()
    await process._give_back(elector)
    assert "was not given back and will run out: connection refused" in caplog.text
