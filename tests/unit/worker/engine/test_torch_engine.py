import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import (
    EngineEvent,
    Finished,
    FinishReason,
    GenerationRequest,
    IntentUnavailableError,
    OverloadedError,
    PromptTooLongError,
    SamplingParams,
    TextDelta,
)
from zerolayer_worker.engine.torch_engine import TorchEngine

GREEDY = SamplingParams(temperature=0.0)


def prompt(length: int, start: int = 3) -> tuple[int, ...]:
    return tuple(3 + (start * 37 + 11 * i) % 256 for i in range(length))


async def collect(engine: TorchEngine, request: GenerationRequest) -> list[EngineEvent]:
    return [event async for event in engine.generate(request)]


def tokens(events: Sequence[EngineEvent]) -> list[int]:
    return [i for event in events if isinstance(event, TextDelta) for i in event.token_ids]


async def answer(
    engine: TorchEngine, length: int, params: SamplingParams = GREEDY, count: int = 24
) -> list[int]:
    return tokens(await collect(engine, GenerationRequest("r", prompt(length), count, params)))


async def test_yields_deltas_and_one_end(engine: TorchEngine) -> None:
    events = await collect(engine, GenerationRequest("r", prompt(20, start=99), 12, GREEDY))
    assert all(isinstance(event, TextDelta) for event in events[:-1])
    assert events[-1] == Finished(FinishReason.LENGTH, prompt_tokens=20, output_tokens=12)


async def test_the_same_prompt_gives_the_same_tokens_in_any_company(engine: TorchEngine) -> None:
    """Mixed lengths, chunk borders included; more requests than slots."""
    lengths = [1, 15, 16, 17, 40, 100, 3]
    alone = [await answer(engine, length) for length in lengths]
    assert await asyncio.gather(*(answer(engine, length) for length in lengths)) == alone
    assert len({tuple(each) for each in alone}) > 3


async def test_a_seed_reproduces_an_answer_in_any_company(engine: TorchEngine) -> None:
    seeded = SamplingParams(intent=Intent.CREATIVE, seed=77)
    alone = await answer(engine, 30, seeded)
    other = SamplingParams(temperature=1.5)
    together = await asyncio.gather(
        answer(engine, 30, seeded), answer(engine, 50, other), answer(engine, 8, other)
    )
    assert together[0] == alone
    assert await answer(engine, 30, replace(seeded, seed=78)) != alone


async def test_without_a_seed_answers_vary(engine: TorchEngine) -> None:
    creative = SamplingParams(intent=Intent.CREATIVE)
    assert await answer(engine, 30, creative) != await answer(engine, 30, creative)


async def test_log_probabilities_come_when_asked_for(engine: TorchEngine) -> None:
    params = replace(GREEDY, logprobs=2)
    events = await collect(engine, GenerationRequest("r", prompt(9), 6, params))
    reported = [entry for event in events if isinstance(event, TextDelta) for entry in event.logprobs]
    assert [entry.token_id for entry in reported] == tokens(events)
    assert all(len(entry.top) == 2 and entry.top[0].token_id == entry.token_id for entry in reported)
    assert all(0 >= entry.top[0].logprob >= entry.top[1].logprob for entry in reported)
    silent = await collect(engine, GenerationRequest("r", prompt(9), 6, GREEDY))
    assert not any(event.logprobs for event in silent if isinstance(event, TextDelta))


async def test_stops_at_a_stop_sequence(engine: TorchEngine) -> None:
    whole = await collect(engine, GenerationRequest("r", prompt(9), 40, GREEDY))
    text = "".join(event.text for event in whole if isinstance(event, TextDelta))
    stop = text[len(text) // 2 : len(text) // 2 + 2]
    cut = await collect(engine, GenerationRequest("r", prompt(9), 40, GREEDY, (stop,)))
    assert "".join(event.text for event in cut if isinstance(event, TextDelta)) == text[: text.index(stop)]
    end = cut[-1]
    assert isinstance(end, Finished)
    assert (end.reason, end.stop_sequence) == (FinishReason.STOP_SEQUENCE, stop)


async def test_a_closed_generator_frees_its_slot_at_once(engine: TorchEngine) -> None:
    generator = engine.generate(GenerationRequest("r", prompt(9), 200, GREEDY))
    await anext(generator)
    assert engine.stats().running == 1
    await generator.aclose()
    assert engine.stats().running == 0


async def test_a_cancelled_task_frees_its_place(engine: TorchEngine) -> None:
    tasks = [asyncio.create_task(answer(engine, 9, count=200)) for _ in range(6)]
    while engine.stats().running < 4:  # noqa: ASYNC110 - set by the engine's thread
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (engine.stats().running, engine.stats().waiting) == (0, 0)
    assert await answer(engine, 20) == await answer(engine, 20)


async def test_a_full_queue_refuses_at_once_and_says_when_to_retry(engine: TorchEngine) -> None:
    tasks = [asyncio.create_task(answer(engine, 9, count=100)) for _ in range(8)]
    while (stats := engine.stats()).running + stats.waiting < 8:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    with pytest.raises(OverloadedError) as refused:
        await answer(engine, 9)
    assert refused.value.retry_after >= 1
    with pytest.raises(OverloadedError) as refused:
        engine.check_room("anybody")
    assert refused.value.retry_after >= 1
    assert refused.value.reason == "queue_full"
    await asyncio.gather(*tasks)


@pytest.mark.parametrize(("length", "count", "fits"), [(200, 56, True), (200, 57, False), (300, 1, False)])
async def test_what_does_not_fit_is_refused(engine: TorchEngine, length: int, count: int, fits: bool) -> None:
    request = GenerationRequest("r", prompt(length), count, GREEDY)
    if fits:
        assert isinstance((await collect(engine, request))[-1], Finished)
    else:
        with pytest.raises(PromptTooLongError, match=rf"\({length} tokens\).*\({count}\).*256 tokens"):
            await collect(engine, request)


async def test_refuses_an_empty_prompt(engine: TorchEngine) -> None:
    with pytest.raises(ValueError, match="needs a prompt"):
        await collect(engine, GenerationRequest("r", (), 5, GREEDY))


async def test_an_intent_that_failed_its_test_is_refused(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(engine._unavailable, Intent.DETERMINISTIC, "rows differ")
    with pytest.raises(IntentUnavailableError, match="rows differ"):
        await answer(engine, 5, SamplingParams(intent=Intent.DETERMINISTIC))


async def test_clients_ids_need_not_be_unique(engine: TorchEngine) -> None:
    first, second = await asyncio.gather(answer(engine, 12), answer(engine, 12))
    assert first == second


def test_a_client_whose_event_loop_is_gone_concerns_nobody_else(engine: TorchEngine) -> None:
    loop = asyncio.new_event_loop()
    generator = engine.generate(GenerationRequest("r", prompt(9), 240, GREEDY))
    loop.run_until_complete(anext(generator))
    loop.close()
    assert len(asyncio.run(answer(engine, 20))) == 24
    asyncio.run(generator.aclose())


async def test_is_busy_while_it_works(engine: TorchEngine) -> None:
    before = engine.stats().steps
    await asyncio.gather(*(answer(engine, 30, count=60) for _ in range(4)))
    stats = engine.stats()
    assert stats.steps > before
    assert 0 < stats.busy_share <= 1
    assert stats.slots == 4
    assert stats.last_step_age_s == 0
