"""Creative answers to open prompts."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from openai import AsyncOpenAI

PROMPTS = {
    "story": "Tell me a short story.",
    "name": "Suggest a name for a new coffee shop and say why.",
    "weekend": "What should I do this weekend?",
}
ANSWERS = 100
TOKENS = 12
"""Whoever differs within 12 tokens differs within 32."""
AT_ONCE = 8


@pytest.mark.promise("creative-varies")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS.keys())
async def test_creative_answers_differ(
    worker_process: Any, prompt: str, figures: Callable[..., None]
) -> None:
    """Of 100 creative answers with distinct seeds at most 15 % of the pairs share their first 32 tokens."""
    began = time.monotonic()
    gate = asyncio.Semaphore(AT_ONCE)
    async with AsyncOpenAI(
        base_url=f"{worker_process.url}/v1", api_key="any", max_retries=0, timeout=600
    ) as client:

        async def ask(seed: int) -> str:
            async with gate:
                completion = await client.chat.completions.create(
                    model=worker_process.model,
                    messages=[{"role": "user", "content": prompt}],
                    max_tokens=TOKENS,
                    seed=seed,
                    extra_body={"intent": "creative"},
                )
                return completion.choices[0].message.content

        texts = Counter(await asyncio.gather(*(ask(seed) for seed in range(ANSWERS))))
    # The same 32 tokens begin with the same 12, and these make the same text: equal texts bound from above.
    same = sum(count * (count - 1) // 2 for count in texts.values())
    share = same / (ANSWERS * (ANSWERS - 1) // 2)
    figures(
        prompt=prompt,
        distinct=len(texts),
        same_pairs=f"{share:.1%}",
        seconds=round(time.monotonic() - began, 1),
    )
    assert share <= 0.15
