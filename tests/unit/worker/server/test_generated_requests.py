"""Generated requests over all that each route accepts, through the SDKs, to an engine that plays its part."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from zerolayer_dev.testing.generated_requests import Generated, generate
from zerolayer_dev.testing.sdk_answers import messages, openai
from zerolayer_worker.engine.api import FinishReason

REQUESTS = 200
STOPPED = (None, FinishReason.LENGTH, FinishReason.STOP_SEQUENCE)


@pytest.mark.promise("protocol")
async def test_objects_are_of_the_sdks_own_types(
    live: Any, engine: Any, figures: Callable[..., None]
) -> None:
    """200 generated requests, streamed and not: types, order and usage as the SDKs' own types have them."""
    asked: Counter[str] = Counter()
    url = live.url
    async with (
        AsyncAnthropic(base_url=url, api_key="any", max_retries=0) as claude,
        AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as gpt,
    ):
        creates = {"chat": gpt.chat.completions.create, "completions": gpt.completions.create}

        async def ask(request: Generated) -> tuple[Any, Any]:
            if request.route == "messages":
                return await messages(claude, "fake-model", request)
            return await openai(creates[request.route], "fake-model", request)

        for seed in range(REQUESTS):
            request = generate(seed)
            asked[request.route] += 1
            engine.finish = STOPPED[seed % 3] or FinishReason.END_OF_SEQUENCE
            engine.stop_sequence = "." if engine.finish is FinishReason.STOP_SEQUENCE else None
            try:
                streamed, whole = await ask(request)
            except Exception as error:
                error.add_note(f"seed {seed}: {request}")
                raise
            assert streamed == whole, request
    figures(**asked)
    assert len(asked) == 3
    assert live.metric("zero_layer_answers_total", outcome="ok") == 2 * REQUESTS
