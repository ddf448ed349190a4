import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_worker.sampling.filters import judge
from zerolayer_worker.sampling.naive import kept_count
from zerolayer_worker.sampling.provider import SamplingControls

CONTROLS = st.builds(
    SamplingControls,
    temperature=st.just(1.0),
    top_k=st.sampled_from([0, 1, 3, 8, 20, 60, 100]),
    top_p=st.sampled_from([1.0, 0.05, 0.5, 0.9, 0.999]),
    min_p=st.sampled_from([0.0, 0.01, 0.3, 0.99]),
)


def ranked(seed: int, size: int, scale: float) -> torch.Tensor:
    scores = torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale
    return scores.sort(descending=True).values


@given(
    controls=CONTROLS,
    seed=st.integers(0, 1000),
    scale=st.sampled_from([0.1, 1.0, 5.0]),
    known=st.sampled_from([1, 4, 16, 60]),
)
def test_a_certain_verdict_is_the_oracles(
    controls: SamplingControls, seed: int, scale: float, known: int
) -> None:
    scores = ranked(seed, 60, scale)
    total = torch.logsumexp(scores, dim=0)[None]
    verdict = judge(scores[None, :known], total, [controls], 60)
    expected = kept_count(torch.softmax(scores, dim=0), controls)
    if bool(verdict.certain[0]):
        assert int(verdict.kept[0]) == expected
    else:
        assert known < 60


@given(controls=CONTROLS, seed=st.integers(0, 1000))
def test_knowing_everything_is_always_certain(controls: SamplingControls, seed: int) -> None:
    scores = ranked(seed, 60, 1.0)
    assert bool(judge(scores[None], torch.logsumexp(scores, dim=0)[None], [controls], 60).certain[0])


def certain(**controls: float) -> bool:
    """100 equal tokens of 1000 are known."""
    scores = torch.zeros(1, 100, dtype=torch.float64)
    total = torch.tensor([math.log(1000.0)], dtype=torch.float64)
    return bool(judge(scores, total, [SamplingControls(temperature=1.0, **controls)], 1000).certain[0])


def test_is_certain_where_the_cut_is_among_the_known() -> None:
    assert certain(top_k=100)
    assert not certain(top_k=101)
    assert certain(top_p=0.0995)
    assert not certain(top_p=0.11)
    assert not certain(min_p=0.5)
    assert certain(top_p=0.99, top_k=50)
    assert not certain(top_p=0.01, top_k=500)


def test_rows_are_judged_apart() -> None:
    scores = torch.stack((ranked(1, 50, 4.0), ranked(2, 50, 0.5)))
    total = torch.logsumexp(scores, dim=1)
    controls = [SamplingControls(temperature=1.0, top_p=0.5), SamplingControls(temperature=1.0, min_p=0.2)]
    both = judge(scores, total, controls, 50)
    for row in (0, 1):
        alone = judge(scores[row : row + 1], total[row : row + 1], [controls[row]], 50)
        assert int(both.kept[row]) == int(alone.kept[0])
