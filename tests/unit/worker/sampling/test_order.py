import torch
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_worker.sampling.order import key_scores, key_token_ids, ordered_bits, rank_keys

SCORES = st.floats(width=32, allow_nan=False)


@given(scores=st.lists(SCORES, min_size=1, max_size=20), start=st.integers(0, 1 << 30))
def test_ranks_by_score_and_then_by_the_lower_id(scores: list[float], start: int) -> None:
    ids = torch.arange(start, start + len(scores))
    ranking = torch.argsort(rank_keys(torch.tensor(scores), ids), descending=True).tolist()
    assert ranking == sorted(range(len(scores)), key=lambda i: (-scores[i], i))


@given(scores=st.lists(SCORES, min_size=1, max_size=20), start=st.integers(0, 1 << 30))
def test_keys_hold_score_and_id(scores: list[float], start: int) -> None:
    ids, values = torch.arange(start, start + len(scores)), torch.tensor(scores)
    keys = rank_keys(values, ids)
    assert torch.equal(key_token_ids(keys), ids)
    assert torch.equal(key_scores(keys), values)


def test_both_zeros_are_one_score() -> None:
    bits = ordered_bits(torch.tensor([0.0, -0.0, 1e-45, -1e-45]))
    assert bits[0] == bits[1]
    assert bits[3] < bits[0] < bits[2]
