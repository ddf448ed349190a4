"""What Prometheus would answer about a pool's load, made up."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from zerolayer_operator.observe.load import STEP_S
from zerolayer_operator.observe.load_query import FIGURES

FLAT: Mapping[str, float] = {
    "arrivals": 1.0,
    "busy": 4.0,
    "queued": 0.0,
    "finished": 1.0,
    "service": 4.0,
    "share": 1.0,
    "slots": 8.0,
    "pods": 2.0,
    "ready": 2.0,
    "rated": 2.0,
}
"""Two workers of eight slots each, to which one request of 4 s comes per second."""

Figure = Callable[[str, int], Any]


def flat(figure: str, _at: int) -> float:
    """The flat load's figures at any instant."""
    return FLAT[figure]


def result(first: int, end: int, of: Figure = flat) -> list[dict[str, Any]]:
    """The result of a range query; a figure that is ``None`` has no value at that instant."""
    rows: list[dict[str, Any]] = []
    for figure in FIGURES:
        values = [
            [at, str(of(figure, at))] for at in range(first, end + 1, STEP_S) if of(figure, at) is not None
        ]
        if values:
            rows.append({"metric": {"figure": figure}, "values": values})
    return rows


def body(rows: object) -> bytes:
    """The whole answer around a result."""
    data = {"resultType": "matrix", "result": rows}
    return json.dumps({"status": "success", "data": data}).encode()
