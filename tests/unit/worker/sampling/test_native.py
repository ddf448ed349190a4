"""The native sampler against the oracle and against the tiled sampler, token for token."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch

from zerolayer_bench.sampling.heads import StoredHead, language_like
from zerolayer_dev.testing.allocations import Allocations
from zerolayer_dev.testing.sampling_cases import (
    against_oracle,
    disagreements,
    native_choosing,
    penalties,
)
from zerolayer_worker.models.head import LmHead
from zerolayer_worker.models.native import build, library
from zerolayer_worker.models.native.choosing import NativeChoosing
from zerolayer_worker.models.native.library import Kernels
from zerolayer_worker.sampling import native
from zerolayer_worker.sampling.naive import NaiveSampler
from zerolayer_worker.sampling.native import NativeSampler
from zerolayer_worker.sampling.noise import gumbel, row_keys
from zerolayer_worker.sampling.provider import Choice, Head, SamplingControls
from zerolayer_worker.sampling.tiled import TiledSampler

CASES = 60
TEXT = penalties(range(0, 600, 3), [*range(0, 600, 4), 8, 8], repetition=1.3, presence=0.4, frequency=0.2)
KINDS: dict[str, SamplingControls] = {
    "greedy": SamplingControls(),
    "greedy-logprobs": SamplingControls(logprobs=5),
    "unfiltered": SamplingControls(temperature=1.0),
    "hot": SamplingControls(temperature=3.0, logprobs=2),
    "cold": SamplingControls(temperature=0.01),
    "balanced": SamplingControls(temperature=0.7, top_p=0.9),
    "creative": SamplingControls(temperature=1.1, min_p=0.05),
    "top-k": SamplingControls(temperature=0.7, top_k=50),
    "all-filters": SamplingControls(temperature=0.8, top_k=300, top_p=0.8, min_p=0.01),
    "penalised": SamplingControls(temperature=1.0, **TEXT),
    "penalised-filtered": SamplingControls(temperature=0.7, top_p=0.9, logprobs=3, **TEXT),
    "walks-again": SamplingControls(temperature=2.0, top_p=0.95),
}


def sampler(head: Head, candidates: int = 256, threads: int = 2) -> NativeSampler:
    return NativeSampler(head, native_choosing(threads), candidates)


def sown(control: SamplingControls, count: int) -> list[SamplingControls]:
    """Seeds from all over the 64 bits."""
    return [
        replace(control, seed=seed * 0x9E3779B97F4A7C15 % (1 << 64), position=seed) for seed in range(count)
    ]


def tokens(choices: list[Choice]) -> list[int]:
    return [choice.token_id for choice in choices]


@pytest.mark.parametrize("candidates", [4, 16, 256])
@pytest.mark.parametrize("tile_rows", [64, 256, 1000, 8192])
def test_chooses_what_the_oracle_chooses(tile_rows: int, candidates: int) -> None:
    """Same noise, same token: over shapes, equal scores, filters, penalties, list lengths and tile sizes."""
    wrong, again = against_oracle(lambda head: sampler(head, candidates), tile_rows, CASES)
    assert wrong == 0
    assert again > 10 if candidates < 64 else True


@pytest.mark.parametrize("vocab", [8192, 20_011])
@pytest.mark.parametrize("kind", KINDS)
def test_chooses_what_the_tiled_sampler_chooses(kind: str, vocab: int) -> None:
    """Over many draws from scores as language has them, at a vocabulary of no whole tiles too."""
    rows, rounds = 32, 12
    head = StoredHead(language_like(rows, vocab))
    ours, theirs = sampler(head), TiledSampler(head)
    controls = sown(KINDS[kind], rows * rounds)
    for start in range(0, len(controls), rows):
        batch = controls[start : start + rows]
        found, expected = (each.sample(torch.zeros(rows, 1), batch) for each in (ours, theirs))
        assert disagreements(found, expected) == 0
    if kind != "walks-again":
        # A cut within rounding of an edge is rare.
        assert ours.second_passes <= theirs.second_passes + 4


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_the_noise_is_the_same(temperature: float) -> None:
    """Among equal scores nothing but the noise decides."""
    head, hidden = StoredHead(torch.zeros(1, 5000)), torch.zeros(64, 1)
    for control in (
        SamplingControls(temperature=temperature),
        SamplingControls(temperature=temperature, top_k=200),
    ):
        batch = sown(control, 64)
        found = tokens(sampler(head).sample(hidden, batch))
        assert found == tokens(TiledSampler(head).sample(hidden, batch))
        assert len(set(found)) > 40


@pytest.mark.parametrize("score", [3.0, -3e4, 3e4, 3e6])
def test_large_values_are_rounded_as_torch_rounds_them(score: float) -> None:
    """Score over temperature is so large that fp32 keeps few bits of the noise: many values are equal."""
    head, hidden = StoredHead(torch.full((1, 5000), score)), torch.zeros(64, 1)
    batch = sown(SamplingControls(temperature=0.02), 64)
    assert tokens(sampler(head).sample(hidden, batch)) == tokens(TiledSampler(head).sample(hidden, batch))


@pytest.mark.parametrize("filters", [{}, {"top_k": 3}])
def test_values_within_rounding_are_compared_as_torch_compares_them(
    filters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores that undo the noise but for a few units of the last place."""
    compared: list[int] = []
    among = native._among

    def counted(finalists: Any, control: SamplingControls) -> tuple[int, float]:
        compared.append(len(finalists))
        return among(finalists, control)

    monkeypatch.setattr(native, "_among", counted)
    control = SamplingControls(temperature=1.0, seed=9, logprobs=1, **filters)
    noise = gumbel(row_keys([control], torch.device("cpu")), torch.arange(300))[0]
    for other in range(1, 40):
        for steps in range(-4, 5):
            scores = torch.full((1, 300), -50.0)
            scores[0, 0], scores[0, other] = 3 - noise[0], 3 - noise[other] + steps * 2.0**-22
            head = StoredHead(scores, 256)
            found, expected = (
                each.sample(torch.zeros(1, 1), [control]) for each in (sampler(head), TiledSampler(head))
            )
            assert disagreements(found, expected) == 0
    assert compared == [2] * 39 * 9


def test_a_cut_at_a_tokens_edge_is_torchs() -> None:
    """Half of ten equal tokens is five or six of them: which it is depends on the rounding of a sum."""
    head, hidden = StoredHead(torch.zeros(1, 10)), torch.zeros(16, 1)
    found = sampler(head)
    batch = sown(SamplingControls(temperature=1.0, top_p=0.5), 16)
    assert found.sample(hidden, batch) == TiledSampler(head).sample(hidden, batch)
    assert found.second_passes == 16


class Untouchable:
    """Stands where the tiled sampler must not be asked."""

    def sample(self, *_: object) -> list[Choice]:
        raise AssertionError("the tiled sampler was asked")


@pytest.mark.parametrize("vocab", [3000, 20_000])
@pytest.mark.parametrize("counts", [range(60, 200, 20), range(300, 2500, 300)], ids=["listed", "beyond"])
def test_a_cut_within_rounding_of_the_sum_is_torchs(vocab: int, counts: range) -> None:
    """The mass is that of all tokens, which each library adds up in its own order."""
    scores, temperature = language_like(1, vocab), 1.5
    masses = (scores[0].double() / temperature).softmax(0).sort(descending=True).values.cumsum(0)
    head, hidden = StoredHead(scores), torch.zeros(4, 1)
    for count in counts:
        # Half a token's mass away from the edge, then close to it.
        middle = (float(masses[count]) + float(masses[count + 1])) / 2
        apart, asked = sampler(head), sampler(head)
        apart._tiled = Untouchable()  # type: ignore[assignment]
        batch = sown(SamplingControls(temperature=temperature, top_p=middle), 4)
        assert apart.sample(hidden, batch) == TiledSampler(head).sample(hidden, batch)
        assert apart.second_passes == (4 if count > 256 else 0)
        for shift in (-1e-7, 0.0, 1e-7):
            batch = sown(SamplingControls(temperature=temperature, top_p=float(masses[count]) + shift), 4)
            assert asked.sample(hidden, batch) == TiledSampler(head).sample(hidden, batch)
            asked._tiled, kept = Untouchable(), asked._tiled  # type: ignore[assignment]
            with pytest.raises(AssertionError, match="was asked"):
                asked.sample(hidden, batch)
            asked._tiled = kept


def test_the_longer_list_has_an_end_too() -> None:
    head, hidden = StoredHead(0.1 * torch.randn(1, 9000)), torch.zeros(4, 1)
    batch = sown(SamplingControls(temperature=1.0, top_p=0.95), 4)
    found = sampler(head)
    assert found.sample(hidden, batch) == TiledSampler(head).sample(hidden, batch)
    assert found.second_passes == 4


def test_log_probabilities_are_those_of_the_tiled_sampler() -> None:
    head = StoredHead(language_like(8, 20_011))
    batch = sown(SamplingControls(temperature=1.0, logprobs=20), 8)
    found, expected = (each.sample(torch.zeros(8, 1), batch) for each in (sampler(head), TiledSampler(head)))
    for ours, theirs in zip(found, expected, strict=True):
        assert [i for i, _ in ours.top] == [i for i, _ in theirs.top]
        assert all(a >= b for (_, a), (_, b) in pairwise(ours.top))
        assert ours.logprob == pytest.approx(theirs.logprob, abs=1e-6)
        assert [p for _, p in ours.top] == pytest.approx([p for _, p in theirs.top], abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_neither_tile_nor_batch_nor_threads_change_a_choice(kind: str) -> None:
    torch.manual_seed(3)
    weight, hidden = torch.randn(20_000, 16), torch.randn(7, 16)
    controls = sown(KINDS[kind], 7)
    whole = sampler(LmHead(weight, 8192)).sample(hidden, controls)
    for tile_rows in (256, 1024, 32_768):
        assert sampler(LmHead(weight, tile_rows)).sample(hidden, controls) == whole
    for threads in (1, 3):
        assert sampler(LmHead(weight, 8192), threads=threads).sample(hidden, controls) == whole
    alone = sampler(LmHead(weight, 8192))
    assert [alone.sample(hidden[i : i + 1], controls[i : i + 1])[0] for i in range(7)] == whole


def test_company_of_other_kinds_changes_nothing() -> None:
    torch.manual_seed(4)
    weight, hidden = torch.randn(9001, 16), torch.randn(len(KINDS), 16)
    controls = [sown(control, 8)[7] for control in KINDS.values()]
    head = LmHead(weight)
    together = sampler(head).sample(hidden, controls)
    again = sampler(head).sample(hidden.flip(0), controls[::-1])[::-1]
    alone = [sampler(head).sample(hidden[i : i + 1], [each])[0] for i, each in enumerate(controls)]
    assert together == again == alone


@pytest.fixture(scope="module")
def without_avx2() -> Iterator[NativeChoosing]:
    level = build.levels()[-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "best_level", lambda: level)
        kernels = library.Kernels(1)
    choosing = NativeChoosing(kernels)
    yield choosing
    choosing.close()
    kernels.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_cpu_without_vectors_chooses_the_same(kind: str, without_avx2: NativeChoosing) -> None:
    head, controls = StoredHead(language_like(16, 9001)), sown(KINDS[kind], 16)
    plain = NativeSampler(head, without_avx2)
    found, expected = (each.sample(torch.zeros(16, 1), controls) for each in (plain, sampler(head)))
    assert disagreements(found, expected) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [0, 1, 2, 40])
def test_tokens_of_minus_infinity_are_no_ones_choice(kind: str, left: int) -> None:
    """Also where nothing else is left: what happens then is torch's."""
    scores = torch.full((6, 1001), -math.inf)
    for row in range(6):
        scores[row, torch.randperm(1001, generator=torch.Generator().manual_seed(row))[:left]] = -1.5 + row
    head, controls = StoredHead(scores, 256), sown(KINDS[kind], 6)
    found, expected = (
        each.sample(torch.zeros(6, 1), controls) for each in (sampler(head), TiledSampler(head))
    )
    assert tokens(found) == tokens(expected)
    assert [[i for i, _ in each.top] for each in found] == [[i for i, _ in each.top] for each in expected]
    assert not left or all(math.isfinite(scores[row, token]) for row, token in enumerate(tokens(found)))


@pytest.mark.parametrize("kind", ["greedy", "unfiltered", "cold"])
def test_infinite_scores_are_torchs(kind: str) -> None:
    scores = torch.randn(3, 700)
    scores[:, 500] = scores[:, 600] = math.inf
    head, controls = StoredHead(scores, 256), sown(KINDS[kind], 3)
    assert tokens(sampler(head).sample(torch.zeros(3, 1), controls)) == [500] * 3
    for filtered in ("balanced", "creative", "top-k"):
        with pytest.raises(FloatingPointError, match="not numbers"):
            sampler(head).sample(torch.zeros(3, 1), sown(KINDS[filtered], 3))


@pytest.mark.parametrize("place", [0, 300, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_are_no_numbers_are_an_error(kind: str, place: int) -> None:
    weight = torch.randn(1001, 8)
    weight[place] = math.nan
    with pytest.raises(FloatingPointError, match="not numbers"):
        sampler(LmHead(weight, 256)).sample(torch.randn(2, 8), [KINDS[kind]] * 2)


def test_takes_both_zeros_for_equal() -> None:
    head = LmHead(torch.tensor([[-1.0], [0.0], [-0.0]]), 2)
    controls = [SamplingControls(), SamplingControls(logprobs=3), SamplingControls(temperature=0.5, top_k=1)]
    for hidden in (1.0, -1.0):
        rows = torch.full((3, 1), hidden)
        expected = NaiveSampler(head).sample(rows, controls)
        assert disagreements(sampler(head).sample(rows, controls), expected) == 0


def test_of_equal_scores_the_lowest_id_is_the_best() -> None:
    scores = torch.zeros(1, 3000)
    for places in ([2999], [1024, 2999], [77, 1024, 1025], [70, 77], [0, 1]):
        tied = scores.clone()
        tied[0, places] = 1.0
        for control in (SamplingControls(), SamplingControls(temperature=1.0, top_k=1)):
            assert tokens(sampler(StoredHead(tied, 1024)).sample(torch.zeros(1, 1), [control])) == [places[0]]


def test_a_tiny_top_p_needs_one_walk() -> None:
    found = sampler(StoredHead(language_like(4, 9000)))
    batch = sown(SamplingControls(temperature=1.0, top_p=1e-6), 4)
    assert found.sample(torch.zeros(4, 1), batch) == found.sample(torch.zeros(4, 1), sown(KINDS["greedy"], 4))
    assert found.second_passes == 0


def test_rows_beyond_the_controls_only_fill_up() -> None:
    head, hidden = LmHead(torch.randn(50, 8), 16), torch.randn(4, 8)
    controls = [KINDS["creative"], SamplingControls()]
    assert sampler(head).sample(hidden, controls) == sampler(head).sample(hidden[:2], controls)


def test_more_rows_than_there_were_before_and_fewer_again() -> None:
    head = StoredHead(language_like(1, 3000))
    found = NativeSampler(head, NativeChoosing(Kernels(1)))
    for rows in (1, 40, 3):
        batch = sown(KINDS["balanced"], rows)
        assert found.sample(torch.zeros(rows, 1), batch) == TiledSampler(head).sample(
            torch.zeros(rows, 1), batch
        )


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_does_not_grow_with_the_vocabulary(kind: str) -> None:
    kept = []
    for vocab in (16_384, 131_072):
        choosing = NativeChoosing(Kernels(1))
        head = StoredHead(language_like(4, vocab), 2048)
        with Allocations() as watched:
            NativeSampler(head, choosing).sample(torch.zeros(4, 1), sown(KINDS[kind], 4))
        assert watched.largest <= 4 * 8192  # a second walk's log-sum-exp takes groups of 8192
        kept.append(choosing.kept_bytes)
    assert kept[1] <= 1.2 * kept[0]
    assert kept[1] < 4 * 120_000  # the second walk's list, three numbers for each of 4096 tokens
