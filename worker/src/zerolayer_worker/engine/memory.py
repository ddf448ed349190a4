"""How many pages of keys and values a worker's memory has room for. Knows no tensors."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zerolayer_worker.engine.threads import CGROUP
from zerolayer_worker.models.config import ModelConfig

BASE_RESERVE: Final = 256 * 2**20
"""Bytes left for what no formula counts: buffers of libraries, HTTP, the interpreter."""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """What the cache is made of: `pages` of `page` tokens, and the longest context in tokens."""

    pages: int
    page: int
    length: int


def memory_limit(cgroup: Path = CGROUP, meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes this process may use: the control group's limit (v2 or v1), or the machine's memory."""
    total = next(line for line in meminfo.read_text().splitlines() if line.startswith("MemTotal:"))
    limits = [int(total.split()[1]) * 1024]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limits.append(int((cgroup / name).read_text()))
        except (OSError, ValueError):  # not there, or `max`
            continue
    return min(limits)


def resident_bytes(statm: Path = Path("/proc/self/statm")) -> int:
    """Bytes of memory this process has now."""
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def page_bytes(model: ModelConfig, page: int, itemsize: int) -> int:
    """Bytes of one page: keys and values of all layers, `itemsize` bytes each number."""
    return 2 * model.layers * model.kv_heads * page * model.head_dim * itemsize


def activation_bytes(model: ModelConfig, *, chunk: int, length: int) -> int:
    """An upper estimate of a step's own fp32 tensors: scores of a chunk over a whole context, and layers'."""
    scores = 2 * model.heads * chunk * length
    gathered = 4 * model.kv_heads * length * model.head_dim
    layers = 4 * chunk * (2 * model.intermediate_size + 4 * model.hidden_size)
    return 4 * (scores + gathered + layers) + BASE_RESERVE


def plan_pool(
    *, room: int | None, page: int, page_size: int, rows: int, length: int, tokens: int | None, fixed: bool
) -> PoolPlan:
    """Sizes the cache.

    Args:
        room: bytes there are for it; None where that does not matter, as `tokens` are given.
        page: tokens of a page.
        page_size: bytes of a page.
        rows: requests that run at once.
        length: the context that is wanted, in tokens.
        tokens: what the cache is to hold, if somebody said so.
        fixed: whether somebody asked for just this context.

    Raises:
        ValueError: there is no room for a page, or none for the context that was asked for.
    """
    wanted = rows * -(-length // page) if tokens is None else tokens // page
    pages = wanted if room is None else min(wanted, room // page_size)
    if pages < 1:
        raise ValueError(
            f"no memory is left for keys and values: a page of {page} tokens takes {page_size} bytes, there "
            f"are {room if tokens is None else tokens}; give the worker more memory or --kv-cache-tokens more"
        )
    if fixed and pages * page < length:
        raise ValueError(
            f"max_model_len {length} does not fit: there is room for the keys and values of {pages * page} "
            "tokens; lower --max-model-len, raise --memory-utilization or --kv-cache-tokens, or give the "
            "worker more memory"
        )
    return PoolPlan(pages, page, min(length, pages * page))
