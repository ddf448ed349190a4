"""How often the verdict on a canary is right, over many simulated updates with all their looks."""

import os
from collections import Counter
from statistics import median

import pytest
from scipy.stats import beta

from zerolayer_bench.verdict.experiment import CALM, ROUGH, Update, play, play_all, upper_bound
from zerolayer_bench.verdict.traffic import BOUNDS, Harm, Pool
from zerolayer_operator.decide.verdict import Check, Outcome, Reason, Terms
from zerolayer_worker.server import metrics

WORKERS = os.cpu_count() or 1
TERMS = Terms(min_samples=100)
GOLDEN = Terms(min_samples=100, on=TERMS.on | {Check.GOLDEN_ANSWERS, Check.GOLDEN_SIMILARITY})
NO_WORSE = (Harm(), Harm(slower=1.2), Harm(errors=0.001))
"""The same bundle under another name, and differences as small as noise."""

TERRIBLE = Harm(errors=0.5, slower=5)
HARMFUL = {
    Reason.ERROR_RATE_HIGHER: Harm(errors=0.05),
    Reason.FIRST_TOKEN_SLOWER: Harm(slower=3),
    Reason.NOT_DETERMINISTIC: Harm(different=0.2),
    Reason.WRONG_ANSWERS: Harm(right=0.6),
}


@pytest.mark.promise("right-verdicts")
def test_noise_is_rolled_back_in_less_than_one_of_twenty_updates(figures) -> None:
    """Of 2 000 simulated updates over all looks, false roll-backs are at most 5 % (99 % upper bound)."""
    updates = [
        Update(seed, (CALM, ROUGH)[seed % 2], NO_WORSE[seed % len(NO_WORSE)], TERMS, looks=40, peek=True)
        for seed in range(2000)
    ]
    ended = list(play_all(updates, WORKERS))
    failed = sum(item.failed for item in ended)
    at_most = upper_bound(failed, len(ended), 0.99)

    figures(
        updates=len(ended),
        looks=sum(item.looks for item in ended),
        false_roll_backs=failed,
        upper_bound_pct=100 * at_most,
        z_test_at_every_look_pct=100 * sum(item.peeked for item in ended) / len(ended),
    )
    assert at_most <= 0.05
    # Else the noise would be too tame to tell anything.
    assert sum(item.peeked for item in ended) > 0.2 * len(ended)


@pytest.mark.promise("right-verdicts")
def test_harm_is_rolled_back_for_its_own_reason(figures) -> None:
    """Simulated 5 % errors, 3x slower, broken determinism and wrong facts are rolled back as such."""
    for reason, harm in HARMFUL.items():
        updates = [Update(seed, CALM, harm, GOLDEN, looks=60) for seed in range(50)]
        ended = list(play_all(updates, WORKERS))
        reasons = Counter(str(item.reason) for item in ended if item.failed)
        figures(
            harm=reason.value,
            caught_pct=100 * sum(reasons.values()) / len(ended),
            median_samples=median(item.samples for item in ended),
            reasons=dict(sorted(reasons.items())),
        )
        slower = {Reason.FIRST_TOKEN_SLOWER, Reason.TOKENS_SLOWER}
        assert set(reasons) <= (slower if reason in slower else {reason})
        assert sum(reasons.values()) >= 0.95 * len(ended)


@pytest.mark.promise("right-verdicts")
def test_no_verdict_rests_on_thirty_requests(figures) -> None:
    """With 30 requests on the canary there is no verdict, good or bad, however harmful it is."""
    pool, terms = Pool(pods=3, weight=0.1, requests=15), Terms()
    ended = [
        play(Update(seed, CALM, harm, terms, 20, pool)) for seed in range(50) for harm in (TERRIBLE, Harm())
    ]
    samples = [item.samples for item in ended]
    figures(updates=len(ended), least_samples=min(samples), most_samples=max(samples))
    assert median(samples) == pytest.approx(30, abs=3)
    assert {(item.outcome, item.reason) for item in ended} == {(Outcome.UNDECIDED, Reason.TOO_FEW_SAMPLES)}


@pytest.mark.parametrize(("failed", "of"), [(0, 2000), (1, 50), (37, 400), (50, 50)])
def test_upper_bound_is_that_of_clopper_and_pearson(failed: int, of: int) -> None:
    expected = 1.0 if failed == of else float(beta.ppf(0.99, failed + 1, of - failed))
    assert upper_bound(failed, of, 0.99) == pytest.approx(expected, rel=1e-6)


def test_simulated_workers_have_the_bounds_of_real_ones() -> None:
    assert metrics._FINE == BOUNDS
