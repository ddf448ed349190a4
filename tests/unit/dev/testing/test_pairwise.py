from itertools import combinations, product

import pytest

from zerolayer_dev.testing.pairwise import pairwise


@pytest.mark.parametrize("sizes", [(2, 2), (5, 3, 3, 3, 3, 5), (1, 4, 2), (3, 3, 3, 3)])
def test_every_two_values_meet(sizes: tuple[int, ...]) -> None:
    factors = {f"f{index}": [f"{index}:{value}" for value in range(size)] for index, size in enumerate(sizes)}
    rows = pairwise(factors)
    assert all(list(row) == list(factors) for row in rows)
    for a, b in combinations(factors, 2):
        met = {(row[a], row[b]) for row in rows}
        assert met == set(product(factors[a], factors[b]))
    assert len(rows) < 2 * max(a * b for a, b in combinations(sizes, 2))
