"""Asks both sides the golden set and compares what they say."""

import asyncio
from dataclasses import dataclass

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.golden.asking import Answer, Manners, Side
from zerolayer_worker.golden.items import GoldenSet
from zerolayer_worker.golden.report import Asked, Findings
from zerolayer_worker.golden.similarity import Embedder, threshold


@dataclass(frozen=True, slots=True)
class Judge:
    """The base model, and the threshold of similarity; None calibrates it on blue's sampled answers."""

    embedder: Embedder
    fixed: float | None = None


async def run_golden(
    golden: GoldenSet, blue_url: str, green_url: str, manners: Manners, *, judge: Judge
) -> Findings:
    """Asks every item of each side twice, and blue those that must not change twice more, sampled.

    Args:
        golden: what to ask.
        blue_url: the serving revision's.
        green_url: the canary's.
        manners: how to ask, on each side.
        judge: says how alike answers are, and how alike they have to be.
    """
    kept = [item for item in golden.items if not item.change]
    async with Side(blue_url, manners) as blue, Side(green_url, manners) as green:
        of_blue, of_green = await asyncio.gather(_asked(blue, golden), _asked(green, golden))
        draws = [await blue.answers(kept, Intent.BALANCED) for _ in range(2)]
    pairs = list(zip(*draws, strict=True))
    # The rest is computing, which needs no loop any more.
    calibrated = [_alike(judge, first, second) for first, second in pairs if _both(first, second)]
    similar = {
        index: _alike(judge, of_blue.first[index], of_green.first[index])
        for index, item in enumerate(golden.items)
        if not item.change and _both(of_blue.first[index], of_green.first[index])
    }
    return Findings(golden, of_blue, of_green, similar, threshold(calibrated, judge.fixed))


async def _asked(side: Side, golden: GoldenSet) -> Asked:
    """All once before any again: repeats meet the side in another state."""
    first = await side.answers(golden.items, Intent.DETERMINISTIC)
    return Asked(first, await side.answers(golden.items, Intent.DETERMINISTIC))


def _both(first: Answer, second: Answer) -> bool:
    return first.error is None and second.error is None


def _alike(judge: Judge, first: Answer, second: Answer) -> float:
    return judge.embedder.similarity(first.text, second.text)
