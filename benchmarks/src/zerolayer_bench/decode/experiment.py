"""Decode steps of random weights in a published shape: their time, and the least that memory allows."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from zerolayer_worker.engine.capture import capture_steps
from zerolayer_worker.engine.graphs import step_sizes
from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.kv_cache import KvCache, fixed_tables
from zerolayer_worker.models.layers import Storage
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import expected_shapes
from zerolayer_worker.sampling.choice import sampler_for
from zerolayer_worker.sampling.provider import SamplingControls

LLAMA_1B = ModelConfig(
    family="llama",
    vocab_size=128_256,
    hidden_size=2048,
    intermediate_size=8192,
    layers=16,
    heads=32,
    kv_heads=8,
    head_dim=64,
    max_positions=4096,
    norm_eps=1e-5,
    rope_theta=5e5,
    rope_scaling=None,
    tied_head=True,
    qkv_bias=False,
    output_bias=False,
    qk_norm=False,
    unrotated=frozenset(),
    eos_ids=frozenset(),
)
BATCHES = (1, 8, 32)
CONTEXT = 1024
WARM = 5
COPIED_BYTES = 1 << 30


@dataclass(frozen=True)
class Timing:
    """One batch's steps, from known tokens to chosen ones.

    Attributes:
        context: tokens before each row's.
        bandwidth_gb_s: of a large copy on the same device, bytes read and written, 10^9 a second.
        read_mb: weights, keys and values that a step has to read, 10^6 bytes.
        bound_ms: what reading them takes at that bandwidth.
    """

    device: str
    batch: int
    context: int
    way: str
    steps: int
    median_ms: float
    p99_ms: float
    tokens_per_s: float
    bandwidth_gb_s: float
    read_mb: float
    bound_ms: float


def timings(
    device: torch.device,
    *,
    config: ModelConfig = LLAMA_1B,
    batches: Sequence[int] = BATCHES,
    context: int = CONTEXT,
    steps: int = 200,
) -> Iterator[Timing]:
    """For every batch eager steps and, on a GPU, captured ones, in turns."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    runner, weight_bytes = _runner(config, device, max(batches), context)
    captured = capture_steps(runner) if device.type == "cuda" else None
    ways = {"eager": None} | ({} if captured is None else {"graphs": captured})
    speed = bandwidth(device)
    for batch in batches:
        times: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(WARM + steps):
            for way, graphs in ways.items():
                runner.graphs = graphs
                took = _milliseconds(_step(runner, batch, context), device)
                if turn >= WARM:
                    times[way].append(took)
        read = weight_bytes + batch * context * _token_bytes(runner.cache)
        for way, found in times.items():
            ordered, median = sorted(found), statistics.median(found)
            yield Timing(
                device=name,
                batch=batch,
                context=context,
                way=way,
                steps=steps,
                median_ms=median,
                p99_ms=ordered[min(steps - 1, round(0.99 * steps))],
                tokens_per_s=1000 * batch / median,
                bandwidth_gb_s=speed / 1e9,
                read_mb=read / 1e6,
                bound_ms=1000 * read / speed,
            )


def bandwidth(device: torch.device, size: int = COPIED_BYTES) -> float:
    """Bytes a second that a copy of `size` bytes reads and writes; the best of some."""
    source = torch.empty(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best = min(_milliseconds(lambda: target.copy_(source), device) for _ in range(WARM))
    return 2 * size * 1000 / best


def _runner(config: ModelConfig, device: torch.device, rows: int, context: int) -> tuple[Runner, int]:
    """A runner of random weights, and the bytes of those that a step reads."""
    dtype = torch.bfloat16
    tensors = {
        name: torch.randn(shape, dtype=dtype, device=device) * 0.02
        for name, shape in expected_shapes(config).items()
    }
    head = tensors["model.embed_tokens.weight" if config.tied_head else "lm_head.weight"]
    read = sum(tensor.nbytes for tensor in tensors.values())
    if not config.tied_head:
        read -= tensors["model.embed_tokens.weight"].nbytes
    storage = Storage(paged=device.type == "cuda")
    model = Transformer(config, tensors, length=context + 1, storage=storage)
    pages = rows * len(fixed_tables(1, context + 1)[0])
    cache = KvCache(config, pages, dtype, device)
    cache.keys.zero_()
    cache.values.zero_()
    sizes = step_sizes(rows) if model.paged else ()
    return Runner(model, cache, sampler_for(model.head, head), sizes=sizes), read


def _token_bytes(cache: KvCache) -> int:
    return 2 * cache.keys[:, 0, :, 0].numel() * cache.keys.itemsize


def _step(runner: Runner, batch: int, context: int) -> Callable[[], object]:
    tables, tokens = fixed_tables(batch, context + 1), list(range(batch))
    controls = [SamplingControls()] * batch
    return lambda: runner.sampler.sample(runner.states(tokens, [context] * batch, tables), controls)


def _milliseconds(step: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    began = time.perf_counter()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return 1000 * (time.perf_counter() - began)
