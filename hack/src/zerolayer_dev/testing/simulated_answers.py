"""What simulated workers tell of the answers that they have given, as if they were steadily asked."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final

BOUNDS: Final = tuple(0.001 * 1.4**power for power in range(34))
"""Upper bounds of the buckets, in seconds."""

FIRST_TOKEN_S: Final = 0.2
TOKEN_GAP_S: Final = 0.03
TOKENS: Final = 20
_SPREAD: Final = NormalDist(0, 0.4)
"""Of the logarithms of times."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How workers of a revision answer.

    Attributes:
        per_s: Answers of one worker in a second.
        errors: Share of them that fail.
        slower: Factor by which they take longer.
        different: Share of the deterministic ones that are not repeated.
    """

    per_s: float = 20.0
    errors: float = 0.0
    slower: float = 1.0
    different: float = 0.0


GOOD: Final = Quality()


@dataclass(slots=True)
class Answers:
    """All workers of a test.

    Attributes:
        known: Revisions whose workers are good.
        others: How workers of all others answer.
    """

    known: set[str] = field(default_factory=set[str])
    others: Quality = GOOD
    _begun: dict[str, float] = field(default_factory=dict[str, float])

    def told(self, worker: str, revision: str) -> str:
        """A worker's own metrics; it counts from when it is asked first."""
        quality = GOOD if revision in self.known else self.others
        seconds = time.monotonic() - self._begun.setdefault(worker, time.monotonic())
        return "\n".join([*_lines(quality, quality.per_s * seconds), ""])


def _lines(quality: Quality, answers: float) -> Iterator[str]:
    failed = math.floor(answers * quality.errors)
    whole = math.floor(answers) - failed
    yield f'zero_layer_answers_total{{outcome="ok"}} {whole}'
    yield f'zero_layer_answers_total{{outcome="error"}} {failed}'
    repeated = math.floor(answers / 10)
    different = math.floor(repeated * quality.different)
    yield f'zero_layer_consistency_checks_total{{result="same"}} {repeated - different}'
    yield f'zero_layer_consistency_checks_total{{result="different"}} {different}'
    first, gap = FIRST_TOKEN_S * quality.slower, TOKEN_GAP_S * quality.slower
    yield from _histogram("zero_layer_time_to_first_token_seconds", 'route="/v1/messages",', first, whole)
    yield from _histogram("zero_layer_inter_token_seconds", "", gap, whole * TOKENS)


def _histogram(name: str, labels: str, median: float, total: int) -> Iterator[str]:
    for bound in BOUNDS:
        share = _SPREAD.cdf(math.log(bound / median))
        yield f'{name}_bucket{{{labels}le="{bound:.6g}"}} {math.floor(share * total)}'
    yield f'{name}_bucket{{{labels}le="+Inf"}} {total}'
