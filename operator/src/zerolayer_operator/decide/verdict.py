"""Whether green is worse than blue, as far as is known by now; no I/O.

To be asked at every look: over all looks of a soak together, a green that is no worse fails a comparison of
traffic with a probability of at most `Terms.alpha` (see `sequential`).
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from zerolayer_operator.decide import verdict_report as words
from zerolayer_operator.decide.evidence import Golden, QueryResult
from zerolayer_operator.decide.sequential import Process
from zerolayer_operator.decide.verdict_evidence import (
    ERRORS_KEY,
    QUANTILES,
    TIMES,
    Evidence,
    quantile_key,
    threshold,
)
from zerolayer_operator.decide.verdict_terms import (
    Check,
    CheckResult,
    Outcome,
    Reason,
    State,
    Terms,
    Verdict,
)

__all__ = [
    "Check",
    "CheckResult",
    "Evidence",
    "Outcome",
    "Reason",
    "State",
    "Terms",
    "Verdict",
    "judge",
    "too_thin",
]

_SLOWER: Final = {Check.FIRST_TOKEN: Reason.FIRST_TOKEN_SLOWER, Check.TOKEN_GAPS: Reason.TOKENS_SLOWER}
_AT_ONCE: Final = frozenset({Reason.NOT_DETERMINISTIC, Reason.WRONG_ANSWERS, Reason.ANSWERS_DRIFTED})
"""What rests on no sample of users' requests: it fails before there are enough of them."""

_LONGEST_NAME: Final = 63
"""Characters of a check's name in a status."""


def judge(
    evidence: Evidence, terms: Terms, golden: Golden | None = None, queries: Sequence[QueryResult] = ()
) -> Verdict:
    """The verdict as it stands.

    Args:
        evidence: Of all intervals so far.
        terms: What to go by.
        golden: What the golden set found; ``None`` where it has not been asked, or not answered.
        queries: What the user's queries came to at this look.
    """
    samples = evidence.green.requests
    checks = tuple(_checks(evidence, terms, golden, queries))
    failed = [check for check in checks if check.state is State.FAILED]
    at_once = [check for check in failed if check.reason in _AT_ONCE]
    if at_once:
        return _verdict(Outcome.FAIL, at_once, checks, samples)
    if samples < terms.min_samples:
        few = words.too_few(samples, terms.min_samples)
        return Verdict(Outcome.UNDECIDED, Reason.TOO_FEW_SAMPLES, few, checks, samples)
    if failed:
        return _verdict(Outcome.FAIL, failed, checks, samples)
    unknown = [check for check in checks if check.state is State.NO_DATA]
    if unknown:
        return _verdict(Outcome.UNDECIDED, unknown, checks, samples)
    return Verdict(Outcome.PASS, Reason.NO_WORSE, words.no_worse(checks, samples), checks, samples)


def too_thin(terms: Terms, evidence: Evidence, soaked_s: float, soak_s: float) -> bool:
    """Whether traffic alone has left green short of samples at the end of the soak.

    The golden set then supplies samples: its questions are requests that the workers count like any other,
    both sides get the same ones at the same time, and the intervals in which they were asked are added to
    the evidence. Until then those intervals are left out: green's few requests would be the golden set's to a
    greater part than blue's, and a difference between the two kinds would pass for one between the sides.

    Args:
        terms: What to go by.
        evidence: Of all intervals so far but those.
        soaked_s: Seconds since the soak began.
        soak_s: Seconds that it takes.
    """
    return soaked_s >= soak_s and evidence.green.requests < terms.min_samples


def _verdict(
    outcome: Outcome, deciding: Sequence[CheckResult], checks: tuple[CheckResult, ...], samples: int
) -> Verdict:
    message = "; ".join(check.detail for check in deciding)
    return Verdict(outcome, deciding[0].reason or Reason.NO_DATA, message, checks, samples)


def _checks(
    evidence: Evidence, terms: Terms, golden: Golden | None, queries: Sequence[QueryResult]
) -> Iterator[CheckResult]:
    yield _on(Check.ERRORS, terms) or _errors(evidence, terms)
    for check in TIMES:
        yield _on(check, terms) or _times(check, evidence, terms)
    yield _on(Check.CONSISTENCY, terms) or _consistency(evidence, golden or Golden())
    yield _on(Check.GOLDEN_ANSWERS, terms) or _golden_answers(golden, terms)
    yield _on(Check.GOLDEN_SIMILARITY, terms) or _golden_similarity(golden)
    yield CheckResult(Check.DDS, State.OFF, None, words.NO_DDS)
    known = {query.name: query for query in queries}
    for name in terms.queries:
        yield _query(name, known.get(name))


def _on(check: Check, terms: Terms) -> CheckResult | None:
    """The result of a check that is off; ``None`` where it is on."""
    return None if check in terms.on else CheckResult(check, State.OFF, None, words.OFF)


def _errors(evidence: Evidence, terms: Terms) -> CheckResult:
    blue, green = evidence.blue, evidence.green
    if not blue.requests or not green.requests:
        detail = words.nothing("requests", bool(blue.requests), bool(green.requests))
        return CheckResult(Check.ERRORS, State.NO_DATA, Reason.NO_DATA, detail)
    process = evidence.processes.get(ERRORS_KEY, Process())
    if not process.intervals:
        return CheckResult(Check.ERRORS, State.NO_DATA, Reason.NO_DATA, words.NO_SHARED_INTERVAL)
    needed = threshold(terms)
    failed = process.log_evidence >= needed
    detail = words.errors(blue, green, process.log_evidence, needed)
    return _compared(Check.ERRORS, failed, Reason.ERROR_RATE_HIGHER, detail)


def _times(check: Check, evidence: Evidence, terms: Terms) -> CheckResult:
    blue, green = TIMES[check](evidence.blue), TIMES[check](evidence.green)
    if not blue.total or not green.total:
        detail = words.nothing(words.TIMES[check], bool(blue.total), bool(green.total))
        return CheckResult(check, State.NO_DATA, Reason.NO_DATA, detail)
    found = {
        quantile: evidence.processes.get(quantile_key(check, quantile), Process()) for quantile in QUANTILES
    }
    needed = threshold(terms)
    worst = max(QUANTILES, key=lambda quantile: found[quantile].log_evidence)
    detail = words.slower(check, worst, blue, green, log_evidence=found[worst].log_evidence, needed=needed)
    if found[worst].log_evidence >= needed:
        return CheckResult(check, State.FAILED, _SLOWER[check], detail)
    unseen = [quantile for quantile in QUANTILES if not found[quantile].intervals]
    if unseen or green.total < terms.min_samples:
        return CheckResult(
            check, State.NO_DATA, Reason.NO_DATA, words.not_compared(check, unseen, green.total)
        )
    return CheckResult(check, State.OK, None, detail)


def _compared(check: Check, failed: bool, reason: Reason, detail: str) -> CheckResult:
    return (
        CheckResult(check, State.FAILED, reason, detail)
        if failed
        else CheckResult(check, State.OK, None, detail)
    )


def _consistency(evidence: Evidence, golden: Golden) -> CheckResult:
    blue, green = evidence.blue, evidence.green
    if not green.repeats + golden.repeats:
        return CheckResult(Check.CONSISTENCY, State.NO_DATA, Reason.NO_DATA, words.NO_REPEATS)
    failed = green.repeats_different + golden.repeats_different > 0
    return _compared(Check.CONSISTENCY, failed, Reason.NOT_DETERMINISTIC, words.repeats(blue, green, golden))


def _golden_answers(golden: Golden | None, terms: Terms) -> CheckResult:
    if golden is not None and golden.kept and not golden.expected:
        return CheckResult(Check.GOLDEN_ANSWERS, State.OFF, None, words.NONE_EXPECTED)
    if golden is None or not golden.expected:
        detail = words.unknown(golden, words.NO_ANSWERS)
        return CheckResult(Check.GOLDEN_ANSWERS, State.NO_DATA, Reason.NO_DATA, detail)
    # A share such as 0.07 is no binary fraction: 7 of 100 are enough all the same.
    failed = golden.right < round(terms.golden_right * golden.expected, 6)
    detail = words.answers(golden, terms.golden_right)
    return _compared(Check.GOLDEN_ANSWERS, failed, Reason.WRONG_ANSWERS, detail)


def _golden_similarity(golden: Golden | None) -> CheckResult:
    if golden is not None and golden.expected and not golden.kept:
        return CheckResult(Check.GOLDEN_SIMILARITY, State.OFF, None, words.NONE_KEPT)
    if golden is None or golden.similarity is None or not math.isfinite(golden.similarity):
        detail = words.unknown(golden, words.NO_SIMILARITY)
        return CheckResult(Check.GOLDEN_SIMILARITY, State.NO_DATA, Reason.NO_DATA, detail)
    failed = golden.similarity < golden.threshold
    return _compared(Check.GOLDEN_SIMILARITY, failed, Reason.ANSWERS_DRIFTED, words.similarity(golden))


def _query(name: str, result: QueryResult | None) -> CheckResult:
    title = f"query/{name}"[:_LONGEST_NAME]
    if result is None or result.satisfied is None:
        detail = words.query(name, result.detail if result else "not asked yet")
        return CheckResult(title, State.NO_DATA, Reason.NO_DATA, detail)
    state = State.OK if result.satisfied else State.FAILED
    reason = None if result.satisfied else Reason.QUERY_FAILED
    return CheckResult(title, state, reason, words.query(name, result.detail))
