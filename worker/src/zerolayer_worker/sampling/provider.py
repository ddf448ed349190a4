"""What a sampler takes and gives, and the head it works on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from zerolayer_worker.sampling.token_counts import TokenCounts


@dataclass(frozen=True, slots=True)
class SamplingControls:
    """How one row's next token is chosen.

    The order is fixed: penalties, temperature, top-k, top-p over what top-k left, min-p. The filters rank
    tokens by penalised score and equal ones by the lower id, so what is kept is always a prefix of one
    ranking.

    Attributes:
        temperature: 0 takes the best-ranked token and ignores filters and noise.
        top_k: number of best tokens kept; 0 keeps everything.
        top_p: the smallest prefix holding at least this share of the mass is kept; 1 keeps everything.
        min_p: tokens below this share of the best token's probability are dropped; 0 keeps everything.
        seed: with `position` and the token id, all that the noise depends on; 64 bits.
        position: the chosen token's position in its sequence.
        logprobs: number of alternatives to report; None reports nothing.
        repetition_penalty: above 0; divides positive scores of tokens in `history` and multiplies others.
        presence_penalty: subtracted from the scores of tokens that the answer holds.
        frequency_penalty: the same, once for each time the answer holds them.
        history: the tokens the penalties are about; None where there are no penalties.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    position: int = 0
    logprobs: int | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    history: TokenCounts | None = None

    @property
    def filtered(self) -> bool:
        """Whether some tokens may be dropped before the draw."""
        return self.temperature > 0 and (self.top_k > 0 or self.top_p < 1 or self.min_p > 0)


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen token.

    Log-probabilities are natural and of the model's own distribution, before penalties, temperature and
    filters; `top` holds `(token id, log-probability)`, best first.
    """

    token_id: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


class Tile(Protocol):
    """Some consecutive rows of an LM head."""

    @property
    def start(self) -> int:
        """The first row's token id."""
        ...

    @property
    def width(self) -> int:
        """Number of rows."""
        ...

    def scores(self, hidden: Tensor) -> Tensor:
        """`hidden` `[rows, hidden_size]` → fp32 `[rows, width]`."""
        ...


class Head(Protocol):
    """An LM head that is walked tile by tile, in the order of token ids."""

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
        ...

    @property
    def tiles(self) -> Sequence[Tile]:
        """All tiles, without gaps."""
        ...


class SamplerProvider(Protocol):
    """A way to choose tokens; all of them choose the same token for the same input."""

    @property
    def second_passes(self) -> int:
        """How many rows needed more than one pass over the head so far."""
        ...

    def sample(self, hidden: Tensor, controls: Sequence[SamplingControls]) -> list[Choice]:
        """Chooses one token per element of `controls`.

        Args:
            hidden: `[rows, hidden_size]`; rows beyond `len(controls)` only fill the product up.
            controls: one per row that counts.

        Raises:
            FloatingPointError: the scores are not numbers, which means broken weights.
        """
        ...
