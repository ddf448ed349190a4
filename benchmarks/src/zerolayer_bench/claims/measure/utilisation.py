"""How even the use of processor and slots is while both paths get the same requests at the same instants."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

import httpx

from zerolayer_bench.claims.measure.load import closed_loop, open_loop, poisson, questions
from zerolayer_bench.claims.measure.server import SLOTS, Worker, both

TURNS: Final = 4
SECONDS: Final = 20.0
# Of what the slower path can do: room for chance, or its queue would grow without end.
LOAD: Final = 0.7
_CALIBRATION: Final = 24


def measure(_piece: str) -> dict[str, Any]:
    """Shares of each second in which the worker had the processor, and its slots were busy."""
    with both() as workers:
        return asyncio.run(_turns(workers))


async def _turns(workers: Mapping[str, Worker]) -> dict[str, Any]:
    ended = await closed_loop(workers["logits"], questions("calibration", _CALIBRATION), clients=SLOTS)
    capacity = len(ended) / max(request["ended"] for request in ended)
    await closed_loop(workers["fused"], questions("warm", SLOTS // 2), clients=SLOTS)
    blocks = [
        await _block(workers[path], path, turn, LOAD * capacity)
        for turn in range(TURNS)
        for path in sorted(workers, reverse=turn % 2 == 1)
    ]
    return {"capacity": capacity, "rate": LOAD * capacity, "seconds": SECONDS, "blocks": blocks}


async def _block(worker: Worker, path: str, turn: int, rate: float) -> dict[str, Any]:
    instants = poisson(f"turn {turn}", rate, SECONDS)
    watched = asyncio.create_task(_watch(worker, SECONDS))
    requests = await open_loop(worker, questions(f"open {turn}", len(instants)), instants)
    samples = await watched
    return {"turn": turn, "path": path, "requests": len(requests), **samples}


async def _watch(worker: Worker, seconds: float) -> dict[str, list[float]]:
    """Samples once a second, without the tail in which the last answers end."""
    processor, slots = list[float](), list[float]()
    async with httpx.AsyncClient(trust_env=False) as client:
        began = time.monotonic()
        before = (began, worker.processor_seconds(), await worker.busy_seconds(client))
        for second in range(1, int(seconds) + 1):
            await asyncio.sleep(max(0.0, began + second - time.monotonic()))
            busy = await worker.busy_seconds(client)
            now = (time.monotonic(), worker.processor_seconds(), busy)
            took = now[0] - before[0]
            processor.append(round((now[1] - before[1]) / took, 4))
            slots.append(round((now[2] - before[2]) / took, 4))
            before = now
    return {"processor": processor, "slots": slots}
