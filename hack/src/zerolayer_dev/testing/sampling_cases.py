"""Hidden states, heads and controls on which two samplers have to choose the same tokens."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from zerolayer_worker.models.head import LmHead
from zerolayer_worker.models.native.choosing import NativeChoosing
from zerolayer_worker.models.native.library import Kernels
from zerolayer_worker.sampling.naive import NaiveSampler
from zerolayer_worker.sampling.provider import Choice, SamplerProvider, SamplingControls
from zerolayer_worker.sampling.token_counts import TokenCounts

VOCABULARIES = (5, 63, 300, 1001)
LOGPROB_TOLERANCE = 1e-5


@dataclass(frozen=True)
class SamplingCase:
    """One step's input; `weight` is the head's, `[vocab, hidden_size]`."""

    weight: torch.Tensor
    hidden: torch.Tensor
    controls: list[SamplingControls]

    def head(self, tile_rows: int) -> LmHead:
        """The head in tiles."""
        return LmHead(self.weight, tile_rows)


def sampling_case(seed: int) -> SamplingCase:
    """Every other case is of small whole numbers: full of equal scores, and exact in any precision."""
    generator, chance = torch.Generator().manual_seed(seed), random.Random(seed)  # noqa: S311 - cases, not secrets
    vocab, width, rows = chance.choice(VOCABULARIES), chance.choice([4, 16]), chance.randint(1, 6)
    shapes = ((vocab, width), (rows, width))
    if seed % 2:
        weight, hidden = (torch.randint(-2, 3, shape, generator=generator).float() for shape in shapes)
    else:
        weight, hidden = (torch.randn(shape, generator=generator) for shape in shapes)
    return SamplingCase(weight, hidden, [_controls(chance, row, vocab) for row in range(rows)])


def _controls(chance: random.Random, row: int, vocab: int) -> SamplingControls:
    return SamplingControls(
        temperature=chance.choice([0.0, 0.3, 1.0, 1.5, 4.0]),
        top_k=chance.choice([0, 0, 1, 5, 50, vocab]),
        top_p=chance.choice([1.0, 1.0, 0.3, 0.9, 0.99]),
        min_p=chance.choice([0.0, 0.0, 0.05, 0.5]),
        seed=chance.getrandbits(64),
        position=row,
        logprobs=chance.choice([None, None, 0, 3]),
        **_penalties(chance, vocab),
    )


def _penalties(chance: random.Random, vocab: int) -> dict[str, Any]:
    """None for half of the rows; else a prompt and an answer, penalised in any combination."""
    if chance.random() < 0.5:  # noqa: PLR2004 - half of them
        return {}
    return penalties(
        [chance.randrange(vocab) for _ in range(chance.choice([0, 3, 40]))],
        [chance.randrange(vocab) for _ in range(chance.choice([0, 2, 60]))],
        repetition=chance.choice([1.0, 1.3, 0.5]),
        presence=chance.choice([0.0, 1.5, -1.0]),
        frequency=chance.choice([0.0, 0.5, -0.3]),
    )


def penalties(
    prompt: Sequence[int],
    answer: Sequence[int],
    *,
    repetition: float = 1.0,
    presence: float = 0.0,
    frequency: float = 0.0,
) -> dict[str, Any]:
    """Arguments of `SamplingControls` for a sequence of this prompt and this answer so far."""
    history = TokenCounts(prompt)
    for token in answer:
        history.add(token)
    return {
        "repetition_penalty": repetition,
        "presence_penalty": presence,
        "frequency_penalty": frequency,
        "history": history,
    }


@cache
def native_choosing(threads: int = 2) -> NativeChoosing:
    """The native sampling step, opened once."""
    return NativeChoosing(Kernels(threads))


def against_oracle(
    sampler_of: Callable[[LmHead], SamplerProvider], tile_rows: int, cases: int
) -> tuple[int, int]:
    """Lets a sampler and the oracle choose with the same noise, over shapes, equal scores and filters.

    Args:
        sampler_of: makes the sampler of a head.
        tile_rows: of its head's tiles.
        cases: how many.

    Returns:
        Choices that differ, and second passes that the sampler made.
    """
    wrong = again = 0
    for seed in range(cases):
        case = sampling_case(seed)
        sampler = sampler_of(case.head(tile_rows))
        expected = NaiveSampler(case.head(8192)).sample(case.hidden, case.controls)
        wrong += disagreements(sampler.sample(case.hidden, case.controls), expected)
        again += sampler.second_passes
    return wrong, again


def disagreements(found: list[Choice], expected: list[Choice]) -> int:
    """Rows where the token, a reported alternative or (beyond 1e-5) a log-probability differs."""
    return sum(not _same(a, b) for a, b in zip(found, expected, strict=True))


def _same(a: Choice, b: Choice) -> bool:
    if (a.token_id, [i for i, _ in a.top]) != (b.token_id, [i for i, _ in b.top]):
        return False
    pairs = [(a.logprob or 0.0, b.logprob or 0.0), *((x[1], y[1]) for x, y in zip(a.top, b.top, strict=True))]
    return all(abs(x - y) < LOGPROB_TOLERANCE for x, y in pairs)


def draws(
    sampler: SamplerProvider, hidden: torch.Tensor, count: int, *, rows: int = 64, **controls: Any
) -> torch.Tensor:
    """`count` draws for one hidden state `[1, hidden_size]`, every one with its own seed and position."""
    found: list[int] = []
    while len(found) < count:
        batch = [
            SamplingControls(seed=len(found) + row, position=row % 7, **controls)
            for row in range(min(rows, count - len(found)))
        ]
        found += [choice.token_id for choice in sampler.sample(hidden.expand(len(batch), -1), batch)]
    return torch.tensor(found)
