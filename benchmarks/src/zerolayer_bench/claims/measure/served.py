"""Both paths under the same clients, in interleaved blocks of one run."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from zerolayer_bench.claims.measure.load import closed_loop, questions
from zerolayer_bench.claims.measure.server import SLOTS, Worker, both

CLIENTS: Final = 24
TURNS: Final = 7
REQUESTS: Final = 32


def measure(_piece: str) -> dict[str, Any]:
    """Every request of each block, and the peak of each worker's memory while it served."""
    with both() as workers:
        blocks = asyncio.run(_blocks(workers))
        peaks = {path: round(worker.peak_mib(), 1) for path, worker in workers.items()}
    return {"clients": CLIENTS, "slots": SLOTS, "blocks": blocks, "peak_mib": peaks}


async def _blocks(workers: Mapping[str, Worker]) -> list[dict[str, Any]]:
    """Either path goes first in every other turn."""
    for worker in workers.values():
        await closed_loop(worker, questions("warm", SLOTS // 2), clients=SLOTS)
        worker.forget_peak()
    found: list[dict[str, Any]] = []
    for turn in range(TURNS):
        for path in sorted(workers, reverse=turn % 2 == 1):
            asked = questions(f"turn {turn}", REQUESTS)
            requests = await closed_loop(workers[path], asked, clients=CLIENTS)
            found.append({"turn": turn, "path": path, "requests": requests})
    return found
