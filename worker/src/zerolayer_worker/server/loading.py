"""Loads the model in a thread while the operations port already answers."""

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from zerolayer_worker.common.errors import RefusalError
from zerolayer_worker.common.termination import leave_message
from zerolayer_worker.config import WorkerConfig
from zerolayer_worker.engine.api import Engine
from zerolayer_worker.engine.config import ContextLengthError, EngineConfig
from zerolayer_worker.engine.warmup import WarmupError
from zerolayer_worker.server.lifecycle import Lifecycle

_log = logging.getLogger(__name__)


class LoadedEngine(Engine, Protocol):
    """An engine that has warmed up."""

    @property
    def stages(self) -> Mapping[str, float]:
        """Seconds each stage of start-up took."""
        ...

    def close(self) -> None:
        """Stops the engine's threads."""
        ...


class NotLoadedError(Exception):
    """The model could not be loaded, which has been logged; `exit_code` is the process'."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


Loader = Callable[[EngineConfig, Callable[[str], None]], LoadedEngine]


def engine_config(config: WorkerConfig) -> EngineConfig:
    """The engine's part of the configuration."""
    return EngineConfig(
        model_path=config.model_folder,
        served_name=config.served_name,
        device=config.device,
        dtype=config.dtype,
        quantization=config.quantization,
        kernels=config.kernels,
        cuda_graphs=config.cuda_graphs,
        sampler=config.sampler,
        max_model_len=config.max_model_len,
        max_batch_size=config.max_batch_size,
        max_queue=config.max_queue,
        memory_utilization=config.memory_utilization,
        kv_cache_tokens=config.kv_cache_tokens,
        anchor_path=config.anchor_path,
        anchor_version=config.anchor_version,
        anchor_digest=config.anchor_digest,
        lora_path=config.lora_path,
        skip_ska_lora=config.skip_ska_lora,
        router_path=config.router_path,
        consistency_share=config.consistency_share,
        warmup_prompt=config.warmup_prompt,
        warmup_max_tokens=config.warmup_max_tokens,
        warmup_settle_ratio=config.warmup_settle_ratio,
        warmup_timeout_s=config.warmup_timeout_seconds,
    )


async def load_in_thread(
    config: WorkerConfig, load: Loader, lifecycle: Lifecycle, stop: asyncio.Event
) -> LoadedEngine | None:
    """Loads the model in a daemon thread, which an exit does not wait for.

    Returns:
        None where `stop` was set first.

    Raises:
        NotLoadedError: it could not be loaded.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[LoadedEngine] = loop.create_future()
    began = time.monotonic()

    def settle(engine: LoadedEngine | None, error: Exception | None) -> None:
        if future.done():
            return
        if engine is not None:
            future.set_result(engine)
        elif error is not None:
            future.set_exception(error)

    def work() -> None:
        try:
            engine = load(engine_config(config), lambda stage: _begin(lifecycle, stage))
            _spare_the_collector()
        except Exception as error:  # noqa: BLE001  # handed to the event loop, which reports it
            loop.call_soon_threadsafe(settle, None, error)
        else:
            loop.call_soon_threadsafe(settle, engine, None)

    threading.Thread(target=work, name="load", daemon=True).start()
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({future, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not future.done():
        return None
    if (error := future.exception()) is not None:
        raise NotLoadedError(_report(error, config.model_folder, lifecycle.stage))
    _log.info("ready", extra={"model": config.served_name, "seconds": round(time.monotonic() - began, 2)})
    return future.result()


def _spare_the_collector() -> None:
    """Python's collector need not look again at what is loaded by now, which stays to the end.

    Walking it takes a tenth of a second and more, in which no thread runs: neither a stream nor the engine.
    """
    gc.collect()
    gc.freeze()


def _begin(lifecycle: Lifecycle, stage: str) -> None:
    _log.info("start-up", extra={"stage": stage})
    lifecycle.on_stage(stage)


def _report(error: BaseException, folder: Path, stage: str) -> int:
    """One line for what the user can mend; a traceback only for a fault of ours.

    Returns:
        The exit code: 2 for an anchor or adapter that is refused, as for any wrong configuration, else 1.
    """
    if isinstance(error, RefusalError):
        _log.error("the configuration is refused: %s", error, extra={"stage": stage, "reason": error.reason})
        leave_message(str(error))
        return 2
    remedy = _remedy(error)
    cause = str(error).partition("\n")[0] or type(error).__name__
    advice = remedy or "report it, with the log's traceback"
    _log.error(
        "the model could not be loaded: %s",
        cause,
        extra={"stage": stage, "folder": str(folder), "remedy": advice},
        exc_info=None if remedy else error,
    )
    leave_message(f"the model could not be loaded (stage {stage}): {cause}; {advice}")
    return 1


def _remedy(error: BaseException) -> str | None:
    """What the user can do; None where the fault is ours."""
    if isinstance(error, WarmupError):
        return "give the worker more CPU, or raise --warmup-timeout-seconds"
    # torch's own class, by name: this side of the contract does not import torch.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "give the worker more memory, or lower --max-model-len or --max-batch-size"
    if isinstance(error, ContextLengthError):
        return "lower --max-model-len, or leave it out"
    if isinstance(error, FloatingPointError):
        return "the weights are broken; download or convert the model again"
    if isinstance(error, OSError | ValueError):
        return "check --model-path, --device, --dtype, --quantization and --max-model-len"
    return None
