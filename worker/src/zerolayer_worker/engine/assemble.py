"""Puts model, cache, sampler, scheduler and loop together and gets them ready."""

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import torch

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import ModelInfo
from zerolayer_worker.engine.base import Base, read_anchor, read_base
from zerolayer_worker.engine.block_manager import BlockManager
from zerolayer_worker.engine.capture import capture_steps, may_capture
from zerolayer_worker.engine.config import ContextLengthError, EngineConfig
from zerolayer_worker.engine.device import fix_threads, pick_device, pick_dtype
from zerolayer_worker.engine.fingerprint import fingerprint, platform_parts
from zerolayer_worker.engine.graphs import step_sizes
from zerolayer_worker.engine.loop import EngineLoop
from zerolayer_worker.engine.memory import (
    PoolPlan,
    activation_bytes,
    memory_limit,
    page_bytes,
    plan_pool,
    resident_bytes,
)
from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.engine.scheduler import Scheduler
from zerolayer_worker.engine.selftest import SelfTestResult, choose_row_multiple
from zerolayer_worker.engine.storage import choose_storage, sampling_kernels
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.engine.warmup import warm_up
from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.head import TILE_ROWS
from zerolayer_worker.models.kv_cache import KvCache, page_tokens, pages_for
from zerolayer_worker.models.native.choosing import NativeChoosing
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.models.transformer import Transformer
from zerolayer_worker.models.weights import load_tensors
from zerolayer_worker.sampling.choice import sampler_for
from zerolayer_worker.sampling.entropy import EntropyRouter
from zerolayer_worker.sampling.native import NativeSampler
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.tiled import CANDIDATES

_log = logging.getLogger(__name__)


class _Stages:
    """Times the stages and announces them."""

    def __init__(self, on_stage: Callable[[str], None]) -> None:
        self._on_stage = on_stage
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        self._on_stage(name)
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began


def assemble(config: EngineConfig, on_stage: Callable[[str], None]) -> TorchEngine:
    """See `launch.load_engine`."""
    stages = _Stages(on_stage)
    bundle = None
    if config.anchor_path is not None:
        with stages.stage("anchor"):
            bundle = read_anchor(config)
    with stages.stage("load"):
        fix_threads(config.threads)
        base = read_base(config, bundle)
        runner, length = _runner(config, base)
        tokenizer = ModelTokenizer(config.model_path, max_tokens=length)
    if config.warmup:
        with stages.stage("compile"):
            _first_step(runner)
        if may_capture(config.cuda_graphs, runner):
            with stages.stage("capture"):
                runner.graphs = capture_steps(runner)
    with stages.stage("selftest"):
        tested = choose_row_multiple(runner, config.max_batch_size)
    engine = _engine(config, runner, tokenizer, tested, base, length=length)
    if config.warmup:
        with stages.stage("settle"):
            _settle(engine, config)
    engine.stages = stages.seconds
    engine.forget_load()
    return engine


def _settle(engine: TorchEngine, config: EngineConfig) -> None:
    try:
        warm_up(
            engine,
            prompt=config.warmup_prompt,
            max_tokens=config.warmup_max_tokens,
            settle_ratio=config.warmup_settle_ratio,
            timeout_s=config.warmup_timeout_s,
        )
    except BaseException:
        engine.close()
        raise


def _context_length(config: EngineConfig, model: ModelConfig) -> int:
    wanted = config.max_model_len or model.max_positions
    if wanted > model.max_positions:
        raise ContextLengthError(
            f"max_model_len {wanted} exceeds the model's own maximum of {model.max_positions}"
        )
    return wanted


def _runner(config: EngineConfig, base: Base) -> tuple[Runner, int]:
    """The model with as many pages as there is memory for, and the longest context that fits, in tokens."""
    wanted = _context_length(config, base.config)
    device = pick_device(config.device)
    dtype = pick_dtype(config.dtype, device)
    with torch.inference_mode():
        tensors = load_tensors(config.model_path, base.config, dtype, device)
        base.apply(tensors)
        head_weight = tensors.get("lm_head.weight", tensors["model.embed_tokens.weight"])
        storage, kernels = choose_storage(config, base.config, device, dtype)
        model = Transformer(base.config, tensors, length=wanted, storage=storage, kernels=kernels)
        pool = _pool(config, model)
        cache = KvCache(base.config, pool.pages, dtype, device, page=pool.page)
        router = EntropyRouter(base.router, model.embedding) if base.router is not None else None
    if pool.length < wanted:
        _log.warning(
            "the context is shorter than the model's: there is no memory for more keys and values",
            extra={"max_model_len": pool.length, "model_max": wanted},
        )
    kernels = sampling_kernels(config, device, kernels)
    choosing = NativeChoosing(kernels) if kernels is not None else None
    sampler = sampler_for(model.head, head_weight, config.sampler, choosing)
    sizes = step_sizes(config.max_batch_size) if model.paged else ()
    return Runner(model, cache, sampler, sizes=sizes, router=router), pool.length


def _pool(config: EngineConfig, model: Transformer) -> PoolPlan:
    page = page_tokens(config.prefill_chunk)
    size = page_bytes(model.config, page, model.dtype.itemsize)
    room = None
    if config.kv_cache_tokens is None:
        room = int(config.memory_utilization * _free_bytes(model, page, config.prefill_chunk))
    return plan_pool(
        room=room,
        page=page,
        page_size=size,
        rows=config.max_batch_size,
        length=model.length,
        tokens=config.kv_cache_tokens,
        fixed=config.max_model_len is not None,
    )


def _free_bytes(model: Transformer, page: int, chunk: int) -> int:
    """Memory beside the weights and a step's own tensors, which a GPU's allocator keeps once it had them."""
    reserve = activation_bytes(model.config, chunk=chunk, length=model.length)
    if model.device.type == "cuda":
        count = min(chunk, model.length)
        pages = pages_for(count, page)
        model.prefill(
            [0] * count, 0, range(pages), KvCache(model.config, pages, model.dtype, model.device, page=page)
        )
        torch.cuda.synchronize(model.device)
        return max(0, torch.cuda.mem_get_info(model.device)[0] - reserve)
    return max(0, memory_limit() - resident_bytes() - reserve)


@torch.inference_mode()
def _first_step(runner: Runner) -> None:
    """Libraries choose and build their kernels at first use."""
    state = runner.model.prefill([0], 0, [0], runner.cache)
    runner.model.decode([0], [0], [[0]], runner.cache)
    for controls in (SamplingControls(), SamplingControls(temperature=1.0, top_p=0.9)):
        runner.sampler.sample(state, [controls])


def _engine(
    config: EngineConfig,
    runner: Runner,
    tokenizer: ModelTokenizer,
    tested: SelfTestResult,
    base: Base,
    *,
    length: int,
) -> TorchEngine:
    model = runner.model
    unavailable = {} if tested.reason is None else {Intent.DETERMINISTIC: tested.reason}
    for intent, reason in unavailable.items():
        _log.warning("intent is not available", extra={"intent": intent, "reason": reason})
    cache = runner.cache
    blocks = BlockManager(pages=cache.pages, page=cache.page, chunk=config.prefill_chunk)
    scheduler = Scheduler(rows=config.max_batch_size, max_queue=config.max_queue, blocks=blocks)
    dtype = str(model.dtype).removeprefix("torch.")
    parts = platform_parts(model.device, model.dtype) | {
        **base.parts(),
        "threads": torch.get_num_threads(),
        "chunk": config.prefill_chunk,
        "rows": runner.row_multiple,
        "quantization": config.quantization,
        "step": model.step_kernels,
        "prompts": model.prompt_kernels,
        **({} if runner.graphs is None else {"graphs": runner.graphs.sizes}),
        "sampler": f"{type(runner.sampler).__name__} {TILE_ROWS} {CANDIDATES}",
        "choice": runner.sampler.kernels if isinstance(runner.sampler, NativeSampler) else "torch",
    }
    return TorchEngine(
        info=ModelInfo(
            name=config.served_name,
            digest=base.digest,
            created=int((config.model_path / "config.json").stat().st_mtime),
            max_model_len=length,
            vocab_size=model.config.vocab_size,
            supports_tools=tokenizer.supports_tools,
            dtype=dtype,
            device=str(model.device),
            anchor=base.anchor,
            lora=base.adapter.digest if base.adapter is not None else None,
            kernels=str(parts["kernels"]),
            router=base.router.digest if base.router is not None else None,
        ),
        tokenizer=tokenizer,
        eos_ids=model.config.eos_ids,
        loop=EngineLoop(
            runner,
            scheduler,
            tokenizer,
            chunk=config.prefill_chunk,
            consistency_share=config.consistency_share,
            prefix_root=fingerprint(base.parts()).encode(),
        ),
        fingerprint=fingerprint(parts),
        unavailable_intents=unavailable,
        seed=config.seed,
    )
