from dataclasses import replace

import pytest

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import GenerationRequest, SamplingParams
from zerolayer_worker.engine.output import OutputProcessor
from zerolayer_worker.engine.sequence import Sequence, seed_source
from zerolayer_worker.sampling.provider import SamplingControls

CLASSIC = SamplingParams(temperature=0.4, top_p=0.8, top_k=7, min_p=0.1, logprobs=2)


def controls(params: SamplingParams) -> SamplingControls:
    request = GenerationRequest("r", (5, 6, 7), 10, params)
    output = OutputProcessor(None, max_tokens=10, eos_ids=frozenset(), stops=())  # type: ignore[arg-type]
    return Sequence(request, output, lambda _event: None, seed=99).controls()


def test_classic_parameters_count() -> None:
    assert controls(CLASSIC) == SamplingControls(
        temperature=0.4, top_k=7, top_p=0.8, min_p=0.1, seed=99, position=3, logprobs=2
    )


@pytest.mark.parametrize(("asked", "used"), [(0.0, 0.0), (5e-324, 1e-30), (1e-31, 1e-30), (1e-29, 1e-29)])
def test_scores_over_a_tiny_temperature_stay_finite(asked: float, used: float) -> None:
    """Infinite scores would choose any token, and 0 / 0 would end the engine's loop."""
    assert controls(SamplingParams(temperature=asked)).temperature == used


@pytest.mark.parametrize("intent", Intent)
def test_with_an_intent_they_do_not(intent: Intent) -> None:
    plain = SamplingParams(intent=intent)
    assert controls(replace(CLASSIC, intent=intent, logprobs=None)) == controls(plain)


def test_the_noise_moves_on_with_every_token() -> None:
    output = OutputProcessor(None, max_tokens=10, eos_ids=frozenset(), stops=())  # type: ignore[arg-type]
    sequence = Sequence(GenerationRequest("r", (5, 6), 10), output, lambda _event: None, seed=1)
    sequence.take(8)
    assert (sequence.length, sequence.token_at(2), sequence.controls().position) == (3, 8, 3)


@pytest.mark.parametrize(
    ("penalty", "ids", "counts"),
    [
        ({"repetition_penalty": 1.2}, [5, 6, 8], [0, 2, 1]),
        ({"presence_penalty": 0.5}, [8, 6], [1, 2]),
        ({"frequency_penalty": -0.5}, [8, 6], [1, 2]),
    ],
)
def test_penalties_come_with_the_tokens_they_are_about(
    penalty: dict[str, float], ids: list[int], counts: list[int]
) -> None:
    """Repetition is about prompt and answer, the others about the answer alone."""
    output = OutputProcessor(None, max_tokens=10, eos_ids=frozenset(), stops=())  # type: ignore[arg-type]
    request = GenerationRequest("r", (5, 6), 10, SamplingParams(**penalty))
    sequence = Sequence(request, output, lambda _event: None, seed=1)
    for token in (8, 6, 6):
        sequence.take(token)
    found = sequence.controls()
    assert found.history is not None
    assert (list(found.history.ids), list(found.history.counts)) == (ids, counts)
    assert {name: getattr(found, name) for name in penalty} == penalty


def test_without_penalties_no_token_is_counted() -> None:
    assert controls(CLASSIC).history is None


def test_fresh_seeds_differ() -> None:
    fresh = seed_source(None)
    assert len({fresh() for _ in range(100)}) == 100


def test_a_start_fixes_the_sequence_of_seeds() -> None:
    first, second, other = seed_source(7), seed_source(7), seed_source(8)
    seeds = [first() for _ in range(10)]
    assert seeds == [second() for _ in range(10)]
    assert len({*seeds, other()}) == 11
