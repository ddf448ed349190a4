"""From an intent to sampling parameters."""

from dataclasses import dataclass

from zerolayer_worker.common.intents import Intent


@dataclass(frozen=True, slots=True)
class IntentParameters:
    """Temperature and filters; the meaning of each is that of `SamplingControls`."""

    temperature: float
    top_p: float = 1.0
    min_p: float = 0.0


# One filter per intent, chosen so that the tiled sampler's single pass nearly always suffices: nucleus
# sampling is cheap at low temperature, min-p at high.
_FIXED = {
    Intent.DETERMINISTIC: IntentParameters(temperature=0.0),
    Intent.BALANCED: IntentParameters(temperature=0.7, top_p=0.9),
    Intent.CREATIVE: IntentParameters(temperature=1.1, min_p=0.05),
}


def route(intent: Intent) -> IntentParameters:
    """The intent's parameters."""
    return _FIXED[intent]
