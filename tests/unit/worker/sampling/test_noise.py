import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from zerolayer_worker.sampling.noise import gumbel, key_tensor, stream_key

MASK = (1 << 64) - 1


def splitmix64(state: int) -> int:
    """The published function, in Python's own integers."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


def noise(seed: int, position: int, ids: torch.Tensor) -> torch.Tensor:
    return gumbel(key_tensor([stream_key(seed, position)], torch.device("cpu")), ids)[0]


def test_the_hash_is_the_published_one() -> None:
    assert splitmix64(0) == 0xE220A8397B1DCDAF
    key, token_id = stream_key(12345, 7), 49151
    uniform = ((splitmix64((key + token_id * 0x9E3779B97F4A7C15) & MASK) >> 24) + 1) / 2**40
    expected = -torch.tensor(-torch.log1p(torch.tensor(-uniform, dtype=torch.float64)).item()).log()
    torch.testing.assert_close(noise(12345, 7, torch.tensor([token_id]))[0], expected.float())


@given(seed=st.integers(0, MASK), position=st.integers(0, 1 << 20), start=st.integers(0, 200_000))
def test_it_is_a_pure_function_of_seed_position_and_token(seed: int, position: int, start: int) -> None:
    ids = torch.arange(start, start + 37)
    whole = noise(seed, position, ids)
    assert torch.equal(whole[11:12], noise(seed, position, ids[11:12]))
    keys = key_tensor([stream_key(1, 2), stream_key(seed, position), stream_key(3, 4)], torch.device("cpu"))
    assert torch.equal(gumbel(keys, ids)[1], whole)
    assert bool(whole.isfinite().all())


def test_it_follows_the_gumbel_distribution() -> None:
    for seed, position in ((0, 0), (0, 1), (1, 0), (MASK, 5)):
        sample = noise(seed, position, torch.arange(50_000)).double().numpy()
        assert stats.kstest(sample, stats.gumbel_r.cdf).pvalue > 1e-3


def test_the_upper_tail_that_decides_the_draw_is_right() -> None:
    """The maximum over a vocabulary follows a Gumbel distribution shifted by its logarithm."""
    size, ids = 1000, torch.arange(1000)
    keys = key_tensor([stream_key(seed, 3) for seed in range(4000)], torch.device("cpu"))
    maxima = gumbel(keys, ids).amax(dim=1).double().numpy()
    shift = float(torch.tensor(float(size)).log())
    assert stats.kstest(maxima, stats.gumbel_r(loc=shift).cdf).pvalue > 1e-3
    assert len(set(maxima)) > 3990


def test_neighbouring_streams_are_unrelated() -> None:
    ids = torch.arange(20_000)
    base = noise(5, 5, ids)
    for other in (noise(5, 6, ids), noise(6, 5, ids), noise(5, 5, ids + 1)):
        correlation = float(torch.corrcoef(torch.stack((base, other)))[0, 1])
        assert abs(correlation) < 4 / 20_000**0.5
