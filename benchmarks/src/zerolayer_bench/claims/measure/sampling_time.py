"""The sampling step's time, fused and from kept logits, in turns."""

from dataclasses import asdict
from typing import Any

import torch

from zerolayer_bench.sampling import experiment

REPEATS = 200


def measure(piece: str) -> dict[str, Any]:
    """Times of every way at one vocabulary, without the head's product."""
    with torch.inference_mode():
        found = experiment.timings("cpu", REPEATS, vocabularies=(int(piece),))
        return {"timings": [asdict(timing) for timing in found]}
