"""The demo's model in an engine of this process."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from zerolayer_dev.models.builtin import model_dir
from zerolayer_worker.engine.api import Failed, GenerationRequest, TextDelta
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine

ROWS = 16


@contextmanager
def serving(**settings: Any) -> Iterator[TorchEngine]:
    """An engine for up to 16 requests at once, which asks itself nothing."""
    config = EngineConfig(
        **{
            "model_path": model_dir(),
            "served_name": "claims",
            "max_batch_size": ROWS,
            "max_queue": 1024,
            "max_model_len": 1024,
            "consistency_share": 0.0,
            "seed": 1,
        }
        | settings
    )
    engine = load_engine(config, lambda _stage: None)
    try:
        yield engine
    finally:
        engine.close()


async def answer(engine: TorchEngine, request: GenerationRequest) -> tuple[int, ...]:
    """The answer's tokens.

    Raises:
        RuntimeError: it failed.
    """
    return tuple([token async for token in _tokens(engine, request)])


async def _tokens(engine: TorchEngine, request: GenerationRequest) -> AsyncIterator[int]:
    async for event in engine.generate(request):
        if isinstance(event, Failed):
            raise RuntimeError(event.message)  # noqa: TRY004 - an answer's end, not a wrong type
        if isinstance(event, TextDelta):
            for token in event.token_ids:
                yield token
