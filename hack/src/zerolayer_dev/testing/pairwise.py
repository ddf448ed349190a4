"""All-pairs designs: every two values of every two factors meet in at least one row."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any


def pairwise(factors: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of one value per factor, built greedily: each row takes the values that meet most new partners.

    As in Cohen and others, The AETG System (IEEE Transactions on Software Engineering, 1997), without chance.
    """
    names = list(factors)
    missing = {
        ((a, x), (b, y))
        for a, b in combinations(names, 2)
        for x, y in product(range(len(factors[a])), range(len(factors[b])))
    }
    rows: list[dict[str, Any]] = []
    while missing:
        chosen = dict(min(missing, key=lambda pair: [(names.index(name), value) for name, value in pair]))
        for name in names:
            if name not in chosen:
                chosen[name] = max(
                    range(len(factors[name])), key=lambda value: (_new(chosen, name, value, missing), -value)
                )
        missing -= {pair for pair in missing if all(chosen[name] == value for name, value in pair)}
        rows.append({name: factors[name][chosen[name]] for name in names})
    return rows


def _new(
    chosen: Mapping[str, int], name: str, value: int, missing: set[tuple[tuple[str, int], tuple[str, int]]]
) -> int:
    """How many missing pairs a value makes with those chosen."""
    own = (name, value)
    return sum(((other, own) in missing) + ((own, other) in missing) for other in chosen.items())
