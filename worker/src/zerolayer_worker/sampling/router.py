"""From an intent, and the expected entropy of the next token where it is known, to sampling parameters."""

from dataclasses import dataclass
from typing import Final

from zerolayer_worker.common.intents import Intent

EDT_BASE: Final = 0.8
"""N of entropy-based dynamic temperature, T = T0 * N^(theta / entropy) (EDT, arXiv 2403.14541)."""


@dataclass(frozen=True, slots=True)
class IntentParameters:
    """Temperature and filters; the meaning of each is that of `SamplingControls`."""

    temperature: float
    top_p: float = 1.0
    min_p: float = 0.0


@dataclass(frozen=True, slots=True)
class IntentRange:
    """Within what an intent's parameters may move, lowest to highest.

    `min_p` falls where `temperature` rises: a distribution with one clear favourite needs its tail cut, a
    flat one has none.
    """

    temperature: tuple[float, float]
    min_p: tuple[float, float] = (0.0, 0.0)


# One filter per intent, chosen so that the tiled sampler's single pass nearly always suffices: nucleus
# sampling is cheap at low temperature, min-p at high.
_FIXED: Final = {
    Intent.DETERMINISTIC: IntentParameters(temperature=0.0),
    Intent.BALANCED: IntentParameters(temperature=0.7, top_p=0.9),
    Intent.CREATIVE: IntentParameters(temperature=1.1, min_p=0.05),
}

RANGES: Final = {
    Intent.BALANCED: IntentRange(temperature=(0.4, 0.9)),
    Intent.CREATIVE: IntentRange(temperature=(0.8, 1.3), min_p=(0.02, 0.1)),
}
"""The intents that a trained router steers; deterministic is the argmax, whatever the entropy."""


def route(intent: Intent) -> IntentParameters:
    """The intent's fixed parameters, for a worker without a trained router."""
    return _FIXED[intent]


def steer(intent: Intent, entropy: float, theta: float) -> IntentParameters:
    """The intent's parameters at an expected entropy.

    Args:
        intent: one of `RANGES`.
        entropy: of the next token's distribution at temperature 1, in nats.
        theta: above 0; how much entropy it takes to leave the range's lower end.
    """
    bounds, share = RANGES[intent], rise(entropy, theta)
    (coldest, hottest), (least, most) = bounds.temperature, bounds.min_p
    return IntentParameters(
        temperature=coldest + (hottest - coldest) * share,
        top_p=_FIXED[intent].top_p,
        min_p=most - (most - least) * share,
    )


def rise(entropy: float, theta: float) -> float:
    """EDT's curve: 0 without entropy, rising towards 1."""
    return EDT_BASE ** (theta / entropy) if entropy > 0 else 0.0
