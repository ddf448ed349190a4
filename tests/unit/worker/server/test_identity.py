"""Every answer names what produced it, and says so where a conversation has changed over."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from prometheus_client import generate_latest

from zerolayer_worker.common.anchor import Anchor
from zerolayer_worker.engine.api import Failed, TextDelta
from zerolayer_worker.server import limits
from zerolayer_worker.server.auth import KeyRing

ANCHOR = Anchor("facts-7", "sha256:" + "a" * 64)
REVISION = "0a1b2c3d4e"
USER: list[Any] = [{"role": "user", "content": "hi"}]
ASKED: dict[str, Any] = {"model": "fake-model", "max_tokens": 20, "messages": USER}
NAMES = {"x-zero-layer-revision": REVISION, "x-zero-layer-anchor": "facts-7"}
CHANGED = "x-zero-layer-revision-changed"
OTHER = {"zero-layer-revision": "ffffffffff"}


@pytest.fixture
async def anchored(start: Callable[..., Awaitable[Any]], engine: Any) -> Any:
    engine.info = dataclasses.replace(engine.info, anchor=ANCHOR)
    return await start(engine, revision=REVISION)


@pytest.fixture
async def claude(anchored: Any) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=anchored.url, api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
async def gpt(anchored: Any) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{anchored.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def named(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name in {*NAMES, CHANGED}}


@pytest.mark.parametrize(("sent", "mark"), [({}, {}), (OTHER, {CHANGED: "true"})])
async def test_whole_and_streamed_answers(
    claude: AsyncAnthropic, gpt: AsyncOpenAI, sent: dict[str, str], mark: dict[str, str]
) -> None:
    message = await claude.messages.with_raw_response.create(**ASKED, extra_headers=sent)
    chat = await gpt.chat.completions.with_raw_response.create(**ASKED, extra_headers=sent)
    assert named(message.headers) == named(chat.headers) == NAMES | mark
    async with claude.messages.stream(**ASKED, extra_headers=sent) as stream:
        assert named(stream.response.headers) == NAMES | mark
    streamed = await gpt.chat.completions.with_raw_response.create(**ASKED, stream=True, extra_headers=sent)
    assert named(streamed.headers) == NAMES | mark
    assert [chunk async for chunk in streamed.parse()]


@pytest.mark.parametrize(
    ("sent", "changed"),
    [
        ([], False),
        ([REVISION], False),
        ([""], False),
        (["ffffffffff"], True),
        ([REVISION.upper()], True),
        ([REVISION, "ffffffffff"], True),
    ],
)
async def test_the_mark_of_a_conversation_that_changed_over(
    anchored: Any, sent: list[str], changed: bool
) -> None:
    headers = [("zero-layer-revision", value) for value in sent]
    answer = await anchored.http.post("/v1/messages", json=ASKED, headers=headers)
    assert answer.headers.get(CHANGED) == ("true" if changed else None)


async def test_a_worker_outside_of_a_pool_names_nothing(live: Any) -> None:
    answer = await live.http.post("/v1/messages", json=ASKED)
    assert named(answer.headers) == {}
    answer = await live.http.post("/v1/messages", json=ASKED, headers=OTHER)
    assert named(answer.headers) == {CHANGED: "true"}


async def test_errors_of_both_protocols(claude: AsyncAnthropic, gpt: AsyncOpenAI) -> None:
    asked = ASKED | {"model": "another"}
    with pytest.raises(anthropic.NotFoundError) as message:
        await claude.messages.create(**asked, extra_headers=OTHER)
    with pytest.raises(openai.NotFoundError) as chat:
        await gpt.chat.completions.create(**asked, extra_headers=OTHER)
    expected = NAMES | {CHANGED: "true"}
    assert named(message.value.response.headers) == named(chat.value.response.headers) == expected


async def test_refusals_before_the_body_is_read(
    start: Any, engine: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.info = dataclasses.replace(engine.info, anchor=ANCHOR)
    (tmp_path / "key").write_text("sk-1")
    keys = KeyRing(tmp_path, on_faults=lambda _: None)
    live = await start(engine, revision=REVISION, keys=keys)
    monkeypatch.setattr(limits, "MAX_BODY_BYTES", 10)
    key = {"x-api-key": "sk-1"}
    for status, path, headers in (
        (401, "/v1/messages", {}),
        (404, "/nowhere", key),
        (413, "/v1/messages", key),
    ):
        answer = await live.http.post(path, json=ASKED, headers=headers | OTHER)
        assert (answer.status_code, named(answer.headers)) == (status, NAMES | {CHANGED: "true"})


async def test_faults_of_the_engine(anchored: Any, engine: Any) -> None:
    engine.events = [Failed("broken")]
    answer = await anchored.http.post("/v1/messages", json=ASKED)
    assert (answer.status_code, named(answer.headers)) == (500, NAMES)
    engine.events = [TextDelta("a", (1,)), Failed("broken")]
    answer = await anchored.http.post("/v1/messages", json=ASKED | {"stream": True})
    assert (answer.status_code, named(answer.headers)) == (200, NAMES)
    assert "event: error" in answer.text


async def test_what_is_no_request(anchored: Any) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", anchored.port)
    writer.write(b"NONSENSE\r\n\r\n")
    answer = (await reader.read()).decode()
    writer.close()
    assert " 400 " in answer
    assert all(f"{name}: {value}\r\n" in answer for name, value in NAMES.items())


async def test_version_and_metrics_name_the_anchor(start_ops: Any, engine: Any) -> None:
    ops = await start_ops(revision=REVISION)
    assert (await ops.http.get("/version")).json()["anchor"] is None
    engine.info = dataclasses.replace(engine.info, anchor=ANCHOR)
    ops.lifecycle.loaded(engine, {})
    version = (await ops.http.get("/version")).json()
    assert version["anchor"] == {"version": ANCHOR.version, "digest": ANCHOR.digest}
    line = f'zero_layer_anchor_info{{digest="{ANCHOR.digest}",version="facts-7"}} 1.0'
    assert line in generate_latest(ops.metrics.registry).decode()
