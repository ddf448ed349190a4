"""Raw numbers of every measurement, small and made up."""

from typing import Any

import pytest

from zerolayer_bench.claims.plan import PIECES
from zerolayer_bench.claims.record import Piece

ABOUT = {
    "machine": "a machine",
    "cpus": 1,
    "torch": "2",
    "commit": "abc",
    "date": "2026-12-01",
    "others": 0.0,
}
SECONDS = 10.0


def requests(count: int, ttft_ms: float) -> list[dict[str, Any]]:
    return [
        {"at": 0.0, "ended": 9.0, "ttft_ms": ttft_ms + number, "tokens": 4, "long": number % 2 == 0}
        for number in range(count)
    ]


def blocks(fused: dict[str, Any], logits: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"turn": turn, "path": path, **data}
        for turn in range(3)
        for path, data in (("fused", fused), ("logits", logits))
    ]


def timing(way: str, median_ms: float, sigma_ms: float) -> dict[str, Any]:
    return {"vocab": 9000, "batch": 1, "way": way, "median_ms": median_ms, "sigma_ms": sigma_ms}


def data() -> dict[str, list[dict[str, Any]]]:
    even, jagged = [0.5] * 3 + [0.5, 0.51], [0.1] * 3 + [0.2, 0.9]
    return {
        "router-size": [{"bytes": 2888}],
        "memory": [
            {"cells": [{"vocab": v, "batch": 64, "fused": 9, "top_p": 9 * v, "top_k": v, "largest": 640}]}
            for v in (100, 200, 300)
        ],
        "sampling-time": [
            {
                "timings": [
                    timing("fused T 0.7, top-p 0.9", 1.0, 0.1),
                    timing("sort-based top-p of logits", 10.0, 2.0),
                    timing("fused T 0.7, top-k 50", 1.0, 0.1),
                    timing("top-k of logits", 0.5, 0.1),
                ]
            }
        ] * 2,
        "served": [
            {
                "clients": 2, "slots": 2, "peak_mib": {"fused": 900.0, "logits": 1000.0},
                "blocks": blocks({"requests": requests(20, 100.0)}, {"requests": requests(10, 400.0)}),
            }
        ],
        "utilisation": [
            {
                "capacity": 2.0, "rate": 1.4, "seconds": SECONDS,
                "blocks": blocks(
                    {"requests": 3, "processor": even, "slots": even},
                    {"requests": 3, "processor": jagged, "slots": jagged},
                ),
            }
        ],
        "switch": [
            {
                "tokens": 2,
                "requests": [
                    {"intent": intent, "switched": switched, "ms": 5.0 + 0.1 * switched}
                    for _ in range(40)
                    for intent in ("balanced", "creative")
                    for switched in (True, False)
                ],
            }
        ],
        "warm-up": [
            {"way": way, "ms": [first, *[10.0] * 5], "stages": {"load": 1.0}}
            for _ in range(3)
            for way, first in (("without", 200.0), ("with", 20.0))
        ],
        "creative": [
            {"prompts": {f"p{number}": {"creative": 0.02 * number, "balanced": 0.5}}}
            for number in range(1, 6)
        ],
        "repeats": [{"answers": {"short": {"1 2": 600}}, "others": 7, "fingerprint": "zl"}] * 3,
    }  # fmt: skip


@pytest.fixture
def records() -> dict[str, list[dict[str, Any]]]:
    return data()


@pytest.fixture
def measured(records: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, Piece]]:
    return {
        name: {label: Piece(ABOUT, each) for label, each in zip(PIECES[name], pieces, strict=False)}
        for name, pieces in records.items()
    }
