"""Generated requests through the SDKs against real weights: every object is what the SDKs' own types say."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from zerolayer_dev.testing.fuzzed_bodies import BODIES, fuzzed
from zerolayer_dev.testing.generated_requests import generate
from zerolayer_dev.testing.sdk_answers import messages, openai

FUZZED = 300
AT_ONCE = 8
pytestmark = [pytest.mark.promise("protocol"), pytest.mark.timeout(600)]


@pytest.fixture
async def claude(worker_process: Any) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(
        base_url=worker_process.url, api_key="any", max_retries=0, timeout=300
    ) as client:
        yield client


@pytest.fixture
async def gpt(worker_process: Any) -> AsyncIterator[AsyncOpenAI]:
    url = f"{worker_process.url}/v1"
    async with AsyncOpenAI(base_url=url, api_key="any", max_retries=0, timeout=300) as client:
        yield client


@pytest.mark.parametrize("requests", [40, pytest.param(200, marks=pytest.mark.long)])
async def test_generated_requests(
    claude: AsyncAnthropic,
    gpt: AsyncOpenAI,
    worker_process: Any,
    requests: int,
    figures: Callable[..., None],
) -> None:
    """Generated requests, streamed and not: types, order and usage as the SDKs' own types have them."""
    seeds, asked, repeated = iter(range(requests)), Counter[str](), 0
    creates = {"chat": gpt.chat.completions.create, "completions": gpt.completions.create}

    async def ask(seed: int) -> None:
        nonlocal repeated
        request = generate(seed)
        asked[request.route] += 1
        if request.route == "messages":
            streamed, whole = await messages(claude, worker_process.model, request)
        else:
            streamed, whole = await openai(creates[request.route], worker_process.model, request)
        if request.repeats:
            repeated += 1
            assert streamed == whole, seed

    async def client() -> None:
        for seed in seeds:
            try:
                await ask(seed)
            except Exception as error:
                error.add_note(f"seed {seed}: {generate(seed)}")
                raise

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    figures(**asked, streamed_equals_whole=repeated)
    assert asked.total() == requests


def short(path: str, content: bytes) -> bytes:
    """The same body, but that it asks for no long answer: that costs time and shows nothing."""
    try:
        body = json.loads(content)
    except ValueError:
        return content
    if not isinstance(body, dict) or path.endswith("count_tokens"):
        return content
    names = ["max_tokens"] if path != "/v1/chat/completions" else ["max_tokens", "max_completion_tokens"]
    lengths = [body[name] for name in names if type(body.get(name)) is int]
    if not lengths or 4 < max(lengths) < 100_000:
        body |= dict.fromkeys(names, 4)
    return json.dumps(body).encode()


async def test_fuzzed_bodies_on_real_weights(worker_process: Any, figures: Callable[..., None]) -> None:
    """300 fuzzed bodies to a real worker: no 5xx, no traceback in its log, and it is ready afterwards."""
    dice, statuses = random.Random(5), Counter[str]()
    async with httpx.AsyncClient(base_url=worker_process.url, timeout=120) as client:
        gate = asyncio.Semaphore(AT_ONCE)

        async def ask(path: str, body: bytes) -> None:
            body = body.replace(b"fake-model", worker_process.model.encode())
            async with gate:
                answer = await client.post(path, content=short(path, body))
            statuses[str(answer.status_code)] += 1
            assert answer.status_code in (200, 400, 404, 413), (path, body, answer.text)

        paths = [dice.choice(sorted(BODIES)) for _ in range(FUZZED)]
        await asyncio.gather(*(ask(path, fuzzed(dice, path)) for path in paths))
        ready = await client.get(f"{worker_process.ops_url}/readyz")
    assert ready.status_code == httpx.codes.OK
    log = worker_process.log.read_text()
    assert "Traceback" not in log
    assert '"level": "error"' not in log
    figures(**{f"status_{status}": count for status, count in sorted(statuses.items())})
