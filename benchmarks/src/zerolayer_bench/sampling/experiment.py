"""Runs every way of choosing again and again, in turns, so that a busy moment meets all of them."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from zerolayer_bench.sampling.baselines import greedy, plain_top_k, sorted_top_p
from zerolayer_bench.sampling.heads import StoredHead, language_like
from zerolayer_worker.models.head import LmHead
from zerolayer_worker.models.native.choosing import NativeChoosing
from zerolayer_worker.models.native.library import Kernels
from zerolayer_worker.sampling.native import NativeSampler
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.tiled import TiledSampler

BATCHES = (1, 8, 16, 64)
VOCABULARIES = (49_152, 128_256)
GPU_HIDDEN_SIZE = 2048
WARM = 3
FEWEST = 20
FUSED = {
    "fused greedy": SamplingControls(),
    "fused T 0.7, top-p 0.9": SamplingControls(temperature=0.7, top_p=0.9),
    "fused T 0.7, top-k 50": SamplingControls(temperature=0.7, top_k=50),
    "fused T 1.1, min-p 0.05": SamplingControls(temperature=1.1, min_p=0.05),
    "fused T 1.0": SamplingControls(temperature=1.0),
}
BASELINES: dict[str, Callable[[Tensor], Tensor]] = {
    "argmax of logits": greedy,
    "sort-based top-p of logits": sorted_top_p,
    "top-k of logits": plain_top_k,
}


@dataclass(frozen=True)
class Timing:
    """One way's times of one step, in milliseconds."""

    vocab: int
    batch: int
    way: str
    runs: int
    median_ms: float
    p99_ms: float
    sigma_ms: float


def timings(device: str, repeats: int, vocabularies: Sequence[int] | None = None) -> Iterator[Timing]:
    """For every vocabulary and batch, every way; `repeats` runs at batch 1, fewer where steps take longer.

    On a CPU without the head's product, which is the same for all; on a GPU, where the kernel holds the
    product, with it for all.
    """
    for vocab in vocabularies or VOCABULARIES:
        for batch in BATCHES:
            ways = _on_cpu(vocab, batch) if device == "cpu" else _on_gpu(vocab, batch)
            times: dict[str, list[float]] = {way: [] for way in ways}
            for turn in range(WARM + max(min(repeats, FEWEST), repeats // batch)):
                for way, step in ways.items():
                    took = _milliseconds(step, device)
                    if turn >= WARM:
                        times[way].append(took)
            for way, found in times.items():
                ordered = sorted(found)
                p99 = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
                spread = statistics.pstdev(found)
                yield Timing(vocab, batch, way, len(found), statistics.median(found), p99, spread)


def _milliseconds(step: Callable[[], object], device: str) -> float:
    began = time.perf_counter()
    step()
    if device != "cpu":
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - began)


def _on_cpu(vocab: int, batch: int) -> dict[str, Callable[[], object]]:
    logits = language_like(batch, vocab)
    head, hidden = StoredHead(logits), torch.zeros(batch, 1)
    native = _fused(NativeSampler(head, _choosing(torch.get_num_threads())), hidden)
    tiled = {f"{way}, tiled": step for way, step in _fused(TiledSampler(head), hidden).items()}
    return native | tiled | {way: (lambda f=f: f(logits)) for way, f in BASELINES.items()}


@cache
def _choosing(threads: int) -> NativeChoosing:
    return NativeChoosing(Kernels(threads))


def _on_gpu(vocab: int, batch: int) -> dict[str, Callable[[], object]]:
    # Not on every machine: it comes with torch for CUDA.
    from zerolayer_worker.sampling.triton_sampler import TritonSampler  # noqa: PLC0415

    weight = torch.randn(vocab, GPU_HIDDEN_SIZE, device="cuda", dtype=torch.bfloat16) * 0.05
    hidden = torch.randn(batch, GPU_HIDDEN_SIZE, device="cuda", dtype=torch.bfloat16)
    baselines = {way: (lambda f=f: f(hidden @ weight.T)) for way, f in BASELINES.items()}
    tiled = {f"{way}, tiled": step for way, step in _fused(TiledSampler(LmHead(weight)), hidden).items()}
    return _fused(TritonSampler(weight, LmHead(weight)), hidden) | tiled | baselines


def _fused(sampler: object, hidden: Tensor) -> dict[str, Callable[[], object]]:
    sample: Callable[[Tensor, list[SamplingControls]], object] = sampler.sample  # type: ignore[attr-defined]
    return {way: (lambda c=control: sample(hidden, [c] * hidden.shape[0])) for way, control in FUSED.items()}
