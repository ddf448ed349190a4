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

BUSY_S: Final = 30.0
"""Seconds without a comparison before one is asked again among clients' requests."""

OWN_S: Final = 60.0
"""Seconds without a comparison before the engine's own request is asked again."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer to get again.

    Attributes:
        request: the client's, or one of the warm-up.
        seed: that it ran with.
        tokens: the answer's first tokens.
    """

    request: GenerationRequest
    seed: int
    tokens: tuple[int, ...]


class Repeats:
    """Keeps the newest samples, each asked for again once, and counts how they came out.

    Before `open` nothing is asked again, and of the engine's own requests one is kept: it is asked again and
    again where clients ask nothing that could be, so that there is an answer to whether answers repeat
    whatever clients do. Times are in seconds of one monotonic clock. The caller sees to it that calls do not
    overlap.

    Args:
        share: of the engine's time that may be spent, in [0, 1]; 0 samples nothing.
    """

    def __init__(self, share: float) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"the share of time must lie between 0 and 1, not {share}")
        self._share = share
        self._open = False
        self._samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)
        self._own: Sample | None = None
        self._rest_until = 0.0
        self._busy_from = 0.0
        self._own_from = 0.0
        self._counts = RepeatCounts()

    @property
    def counts(self) -> RepeatCounts:
        """How many came out the same, and how many did not."""
        return self._counts

    def open(self, now: float) -> None:
        """From here on requests are clients'. The first of the engine's own need not wait for its time."""
        self._open = True
        self._busy_from, self._own_from = now + BUSY_S, now

    def wants(self, request: GenerationRequest) -> bool:
        """Whether the answer to a request is to be kept."""
        return (
            self._share > 0
            and len(request.prompt_ids) <= MAX_PROMPT_TOKENS
            and _deterministic(request.sampling)
        )

    def keep(self, sample: Sample) -> None:
        """Takes a finished answer. Of clients' the newest few stay, of the engine's own a short one."""
        if not sample.tokens:
            return
        if self._open:
            self._samples.append(sample)
        elif self._own is None or len(sample.request.prompt_ids) <= len(self._own.request.prompt_ids):
            self._own = sample

    def wait_s(self, now: float, idle_since: float) -> float | None:
        """Seconds until one may be taken, if no request comes in between; None while there are none."""
        if not self._open or not (self._samples or self._own):
            return None
        due = max(self._rest_until, idle_since + QUIET_S, 0.0 if self._samples else self._own_from)
        return max(0.0, due - now)

    def take(self) -> Sample:
        """The newest sample: the sooner after its answer, the less has changed since.

        Raises:
            IndexError: there is none.
        """
        if self._own is not None and not self._samples:
            return self._own
        return self._samples.pop()

    def take_among_clients(self, now: float, prompt_tokens: int) -> Sample | None:
        """One whose prompt is at most so long, if the last comparison is so long ago that one is due.

        The engine's own goes before clients' once it is due: it is short, and the likelier to come to its end
        where clients soon need the slot.
        """
        if not self._open or now < max(self._rest_until, self._busy_from):
            return None
        candidates = [*self._samples, *([self._own] if self._own and now >= self._own_from else [])]
        short = [each for each in candidates if len(each.request.prompt_ids) <= prompt_tokens]
        if not short:
            return None
        if short[-1] is not self._own:
            self._samples.remove(short[-1])
        return short[-1]

    def compared(self, sample: Sample, tokens: Sequence[int], began: float, now: float) -> bool:
        """Counts an answer that was asked for again, and returns whether it is the same."""
        same = tuple(tokens) == sample.tokens
        counts = self._counts
        self._counts = RepeatCounts(counts.same + same, counts.different + (not same))
        self._busy_from, self._own_from = now + BUSY_S, now + OWN_S
        self._rest(began, now)
        return same

    def given_up(self, sample: Sample, began: float, now: float) -> None:
        """A client's request came first; the sample has another turn."""
        if sample is not self._own:
            self._samples.append(sample)
        self._rest(began, now)

    def _rest(self, began: float, now: float) -> None:
        self._rest_until = now + (now - began) * (1 / self._share - 1)


def _deterministic(sampling: SamplingParams) -> bool:
    if sampling.intent is None:
        return sampling.temperature == 0
    return sampling.intent is Intent.DETERMINISTIC
