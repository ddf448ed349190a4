from hypothesis import given
from hypothesis import strategies as st

from zerolayer_worker.sampling.token_counts import TokenCounts

TOKENS = st.lists(st.integers(0, 9), max_size=30)


@given(prompt=TOKENS, answer=TOKENS)
def test_counts_the_answer_and_knows_the_prompt(prompt: list[int], answer: list[int]) -> None:
    found = TokenCounts(prompt)
    for token in answer:
        found.add(token)
    assert list(found.ids) == list(dict.fromkeys(prompt + answer))
    assert list(found.counts) == [answer.count(token) for token in found.ids]
