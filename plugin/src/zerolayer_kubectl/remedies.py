"""What to do about a revision that failed, by the reason that the operator tells."""

from typing import Final

_SLOWER: Final = (
    "Compare both images and engine settings; if the delay is meant, set spec.update.checks.latency to false."
)
_ANSWERS: Final = "Ask the bundle itself: `zerolayer-worker anchor evaluate` tells hit rate and drift."
_MAKE_ANEW: Final = (
    "Make the bundle anew for this model (`zerolayer-worker anchor train`) and name its digest."
)

_REMEDIES: Final[dict[str, str]] = {
    "ErrorRateHigher": "Look at the kept worker's log for what failed, mend the bundle or the image.",
    "FirstTokenSlower": _SLOWER,
    "TokensSlower": _SLOWER,
    "NotDeterministic": "One request got two answers: look for a change of image, device or engine settings.",
    "WrongAnswers": f"{_ANSWERS} If the golden set expects what has changed since, mend the golden set.",
    "AnswersDrifted": f"{_ANSWERS} Train it with a stronger guard, or for fewer steps.",
    "QueryFailed": "Look at the query of spec.update.checks.queries in Prometheus, for both revisions.",
    "TooFewSamples": (
        "Give the canary more requests or more time: raise spec.update.canaryWeight or spec.update.maxSoak, "
        "lower spec.update.minSamples, or name questions in spec.update.golden."
    ),
    "NoData": (
        "See that the operator reaches the workers' metrics and that both revisions get requests; a check "
        "that can have no data here is switched off in spec.update.checks."
    ),
    "NoRequests": (
        "The canary got no requests: name questions in spec.update.golden, or give it requests by "
        "spec.routing.gateway, a greater spec.update.canaryWeight or more workers; or decide yourself, with "
        "spec.update.promotion: Manual, or without a verdict, with spec.update.strategy: Immediate."
    ),
    "AnchorUnreadable": "The file is no bundle: write it with `zerolayer-worker anchor train` or `pack`.",
    "AnchorForAnotherModel": f"The bundle was made for another base model. {_MAKE_ANEW}",
    "AnchorUnknownTensor": f"The bundle names a parameter that the model lacks. {_MAKE_ANEW}",
    "AnchorWrongShape": f"The bundle's tensors do not fit the model. {_MAKE_ANEW}",
    "AnchorNotFinite": f"The bundle holds values that are no numbers. {_MAKE_ANEW}",
    "AnchorDigestMismatch": (
        "Compare spec.anchor.digest with `zerolayer-worker anchor inspect`: the source holds another file."
    ),
    "AnchorVersionMismatch": "Set spec.anchor.version to the version that the bundle's own metadata names.",
    "NoAnswer": "Look at the log of the revision's workers for why they stopped answering.",
    "WarmupTimedOut": "Look at the log of the revision's workers, or raise spec.warmup.timeoutSeconds.",
    "Requested": "A person left it: apply what is wanted instead.",
}

_OTHERS: Final = "Mend what the message names."


def remedy(reason: str) -> str:
    """A sentence on what to do."""
    return _REMEDIES.get(reason, _OTHERS)
