"""What the golden set found, small enough for a container's termination message."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zerolayer_worker.golden.asking import Answer
from zerolayer_worker.golden.items import GoldenSet, Item
from zerolayer_worker.golden.similarity import Threshold

MAX_BYTES: Final = 4096
"""What the kubelet keeps of a termination message."""

_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """One side's answers to every item, asked twice."""

    first: Sequence[Answer]
    second: Sequence[Answer]

    def failed(self, index: int) -> str | None:
        """Why an item has no answer on this side."""
        return self.first[index].error or self.second[index].error

    def differs(self, index: int) -> bool:
        """Whether a deterministic question got two answers."""
        return self.failed(index) is None and self.first[index] != self.second[index]

    def hit(self, index: int, item: Item) -> bool:
        """Whether the answer is as expected; both are, where they differ."""
        if item.expect is None or self.failed(index) is not None:
            return False
        return item.expect.met_by(self.first[index].text) and item.expect.met_by(self.second[index].text)


@dataclass(frozen=True, slots=True)
class Findings:
    """All that was found.

    Attributes:
        golden: what was asked.
        blue: the serving side's answers.
        green: the canary's.
        similar: similarity of both sides' answers, by the index of items that must not change.
        threshold: what is asked of it.
    """

    golden: GoldenSet
    blue: Asked
    green: Asked
    similar: dict[int, float]
    threshold: Threshold

    def json(self) -> str:
        """The report on one line; names of failing items are left out where there is no room for them."""
        failing = list(self._failing())
        report = self._figures() | {"failing": failing, "failingCount": len(failing)}
        while len(text := json.dumps(report, separators=(",", ":"))) >= MAX_BYTES:
            failing.pop()
        return text

    def _figures(self) -> dict[str, Any]:
        return {
            "set": self.golden.digest,
            "items": len(self.golden.items),
            "expected": sum(item.expect is not None for item in self.golden.items),
            "blue": self._side(self.blue),
            "green": self._side(self.green),
            "similarity": self._similarity(),
        }

    def _side(self, side: Asked) -> dict[str, int]:
        items = self.golden.items
        return {
            "asked": len(items),
            "hits": sum(side.hit(index, item) for index, item in enumerate(items)),
            "errors": sum(side.failed(index) is not None for index in range(len(items))),
            "repeatsDiffer": sum(side.differs(index) for index in range(len(items))),
        }

    def _similarity(self) -> dict[str, Any]:
        values, calibrated = sorted(self.similar.values()), self.threshold.calibrated
        return {
            "kept": sum(not item.change for item in self.golden.items),
            "compared": len(values),
            "least": round(values[0], _DIGITS) if values else None,
            "mean": round(sum(values) / len(values), _DIGITS) if values else None,
            "threshold": round(self.threshold.value, _DIGITS),
            "below": sum(value < self.threshold.value for value in values),
            "calibration": {
                "pairs": len(calibrated),
                "least": round(calibrated[0], _DIGITS) if calibrated else None,
                "mean": round(sum(calibrated) / len(calibrated), _DIGITS) if calibrated else None,
            },
        }

    def _failing(self) -> Iterator[dict[str, str]]:
        """Items that speak against green, in the set's order, each with its first reason."""
        for index, item in enumerate(self.golden.items):
            if (error := self.green.failed(index)) is not None:
                yield {"id": item.id, "why": error}
            elif self.green.differs(index):
                yield {"id": item.id, "why": "two answers to one deterministic question"}
            elif item.expect is not None and not self.green.hit(index, item):
                yield {"id": item.id, "why": "not the expected answer"}
            elif self.similar.get(index, 1.0) < self.threshold.value:
                yield {"id": item.id, "why": f"similarity {self.similar[index]:.4f}"}
