"""Reads what a worker says of the answers that it has given; no I/O."""

from dataclasses import dataclass
from typing import Final

from zerolayer_operator.observe.first_tokens import Buckets, grown
from zerolayer_operator.observe.worker_metrics import (
    FIRST_TOKENS,
    WorkerMetricsError,
    buckets,
    lines,
    samples,
)

ANSWERS: Final = "zero_layer_answers_total"
TOKEN_GAPS: Final = "zero_layer_inter_token_seconds_bucket"  # noqa: S105 - a time, not a secret
CHECKS: Final = "zero_layer_consistency_checks_total"

_LINES: Final = lines({ANSWERS, CHECKS})
_TIMES: Final = {name: lines({name}) for name in (FIRST_TOKENS, TOKEN_GAPS)}


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """What one worker has counted since it began.

    Attributes:
        answered: Answers that were whole.
        failed: Those that failed by the worker's fault.
        first_tokens: Answers by how long their first token took, in seconds.
        token_gaps: Tokens by how long they came after the one before, in seconds.
        same: Deterministic requests whose second answer was the same.
        different: Those whose second answer was another.
    """

    answered: float
    failed: float
    first_tokens: Buckets
    token_gaps: Buckets
    same: float = 0.0
    different: float = 0.0

    def since(self, earlier: "AnswerCounts") -> "AnswerCounts":
        """What they grew by; all of it where the worker has started anew in the meantime."""
        growth = AnswerCounts(
            self.answered - earlier.answered,
            self.failed - earlier.failed,
            grown(self.first_tokens, earlier.first_tokens),
            grown(self.token_gaps, earlier.token_gaps),
            self.same - earlier.same,
            self.different - earlier.different,
        )
        shrunk = min(
            growth.answered,
            growth.failed,
            growth.same,
            growth.different,
            *growth.first_tokens.values(),
            *growth.token_gaps.values(),
        )
        return self if shrunk < 0 else growth


def read_answers(text: str) -> AnswerCounts:
    """The counts in a worker's metrics.

    Args:
        text: The metrics in Prometheus' text format.

    Raises:
        WorkerMetricsError: They are no sensible numbers, or not there: the worker is older than that.
    """
    found: dict[tuple[str, str], float] = {}
    for name, value, labels in samples(text, _LINES):
        key = (name, labels.get("outcome") or labels.get("result") or "")
        found[key] = found.get(key, 0.0) + value
    if not any(name == ANSWERS for name, _ in found):
        raise WorkerMetricsError(
            f"it does not give {ANSWERS}; its image is older than the operator: set a newer spec.worker.image"
        )
    return AnswerCounts(
        answered=found.get((ANSWERS, "ok"), 0.0),
        failed=found.get((ANSWERS, "error"), 0.0),
        first_tokens=_times(text, FIRST_TOKENS),
        token_gaps=_times(text, TOKEN_GAPS),
        same=found.get((CHECKS, "same"), 0.0),
        different=found.get((CHECKS, "different"), 0.0),
    )


def _times(text: str, name: str) -> Buckets:
    return buckets(samples(text, _TIMES[name]))
