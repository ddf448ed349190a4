"""Goodness of fit of drawn tokens, and several such tests at once."""

from collections.abc import Sequence

import torch
from scipy import stats

MIN_EXPECTED = 5.0


def p_value(drawn: torch.Tensor, probabilities: torch.Tensor) -> float:
    """Chi-square p-value of token ids against fp64 `probabilities` `[vocab]`; rare tokens are pooled.

    A pool that is itself rare joins the rarest of the common tokens: the statistic's distribution is known
    for classes with several expected draws only. 0 where a token was drawn that has no probability.
    """
    if bool((probabilities[drawn] == 0).any()):
        return 0.0
    observed = torch.bincount(drawn, minlength=len(probabilities)).double()
    expected = probabilities.double() * len(drawn)
    common = expected >= MIN_EXPECTED
    order = expected[common].argsort(descending=True)
    observed = torch.cat((observed[common][order], observed[~common].sum()[None]))
    expected = torch.cat((expected[common][order], expected[~common].sum()[None]))
    if float(expected[-1]) < MIN_EXPECTED and len(expected) > 1:
        observed, expected = (torch.cat((x[:-2], x[-2:].sum()[None])) for x in (observed, expected))
    if len(observed) < 2:  # noqa: PLR2004 - a single class always fits
        return 1.0
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, len(observed) - 1))


def holm_rejects(p_values: Sequence[float], alpha: float = 0.01) -> list[int]:
    """Which hypotheses Holm's step-down procedure rejects at a family-wise error rate of `alpha`."""
    rejected: list[int] = []
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > alpha / (len(p_values) - rank):
            break
        rejected.append(index)
    return sorted(rejected)
