"""Which deterministic answers are asked for again, when, and whether they came out the same. No tensors."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import GenerationRequest, RepeatCounts, SamplingParams

MAX_SAMPLES: Final = 8
MAX_PROMPT_TOKENS: Final = 2048
MAX_ANSWER_TOKENS: Final = 256
"""Longer answers are compared up to here. All samples together hold under a megabyte."""

QUIET_S: Final = 1.0
"""Seconds without a request before one is asked again."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer to get again.

    Attributes:
        request: the client's.
        seed: that it ran with.
        tokens: the answer's first tokens.
    """

    request: GenerationRequest
    seed: int
    tokens: tuple[int, ...]


class Repeats:
    """Keeps the newest samples, each asked for again once, and counts how they came out.

    Nothing is sampled before `open`. Times are in seconds of one monotonic clock. The caller sees to it that
    calls do not overlap.

    Args:
        share: of the engine's idle time that may be spent, in [0, 1]; 0 samples nothing.
    """

    def __init__(self, share: float) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"the share of idle time must lie between 0 and 1, not {share}")
        self._share = share
        self._open = False
        self._samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)
        self._rest_until = 0.0
        self._counts = RepeatCounts()

    @property
    def counts(self) -> RepeatCounts:
        """How many came out the same, and how many did not."""
        return self._counts

    def open(self) -> None:
        """From here on requests are clients'."""
        self._open = True

    def wants(self, request: GenerationRequest) -> bool:
        """Whether the answer to a request is to be kept."""
        return (
            self._open
            and self._share > 0
            and len(request.prompt_ids) <= MAX_PROMPT_TOKENS
            and _deterministic(request.sampling)
        )

    def keep(self, sample: Sample) -> None:
        """Takes a finished answer; the oldest of too many goes."""
        if sample.tokens:
            self._samples.append(sample)

    def wait_s(self, now: float, idle_since: float) -> float | None:
        """Seconds until one may be taken, if no request comes in between; None while there are none."""
        if not self._samples:
            return None
        return max(0.0, max(self._rest_until, idle_since + QUIET_S) - now)

    def take(self) -> Sample:
        """The newest sample: the sooner after its answer, the less has changed since."""
        return self._samples.pop()

    def compared(self, sample: Sample, tokens: Sequence[int], began: float, now: float) -> bool:
        """Counts an answer that was asked for again, and returns whether it is the same."""
        same = tuple(tokens) == sample.tokens
        counts = self._counts
        self._counts = RepeatCounts(counts.same + same, counts.different + (not same))
        self._rest(began, now)
        return same

    def given_up(self, sample: Sample, began: float, now: float) -> None:
        """A client's request came first; the sample has another turn."""
        self._samples.append(sample)
        self._rest(began, now)

    def _rest(self, began: float, now: float) -> None:
        self._rest_until = now + (now - began) * (1 / self._share - 1)


def _deterministic(sampling: SamplingParams) -> bool:
    if sampling.intent is None:
        return sampling.temperature == 0
    return sampling.intent is Intent.DETERMINISTIC
