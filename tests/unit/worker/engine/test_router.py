"""A trained router in a running engine."""

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import GenerationRequest, SamplingParams, TextDelta
from zerolayer_worker.engine.base import read_base
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.models.digest import folder_digest
from zerolayer_worker.sampling.router_file import RouterError, RouterMetadata, ranges, write_router

PROMPTS = [tuple(range(3 + i, 20 + 7 * i)) for i in range(8)]


def write(path: Path, folder: Path) -> Path:
    """Weights large enough that temperatures differ from step to step."""
    dice = torch.Generator().manual_seed(4)
    metadata = RouterMetadata(
        model_digest=folder_digest(folder), hidden_size=64, features=64, bias=2.0,
        theta={Intent.BALANCED: 2.0, Intent.CREATIVE: 2.0}, ranges=ranges(), r2=0.5, tokens=1000,
    )  # fmt: skip
    write_router(path, torch.randn(64, generator=dice), torch.randn(64, generator=dice), metadata)
    return path


@pytest.fixture(scope="module")
def router_path(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("router") / "r", tiny_folder)


@pytest.fixture(scope="module")
def steered(tiny_config: EngineConfig, router_path: Path) -> Iterator[TorchEngine]:
    engine = load_engine(dataclasses.replace(tiny_config, router_path=router_path), lambda _stage: None)
    yield engine
    engine.close()


async def answer(engine: TorchEngine, prompt: tuple[int, ...], params: SamplingParams) -> list[int]:
    return [
        token
        async for event in engine.generate(GenerationRequest("r", prompt, 24, params))
        if isinstance(event, TextDelta)
        for token in event.token_ids
    ]


@pytest.mark.parametrize("intent", [Intent.BALANCED, Intent.CREATIVE])
async def test_a_seeded_answer_is_the_same_in_any_batch(steered: TorchEngine, intent: Intent) -> None:
    params = [SamplingParams(intent=intent, seed=seed) for seed in range(len(PROMPTS))]
    alone = [await answer(steered, *each) for each in zip(PROMPTS, params, strict=True)]
    together = await asyncio.gather(*(answer(steered, *each) for each in zip(PROMPTS, params, strict=True)))
    assert together == alone


async def test_it_steers_what_varies_and_nothing_else(steered: TorchEngine, engine: TorchEngine) -> None:
    own = [SamplingParams(temperature=1.1, min_p=0.05, seed=9), SamplingParams(intent=Intent.DETERMINISTIC)]
    for params in own:
        for prompt in PROMPTS[:3]:
            assert await answer(steered, prompt, params) == await answer(engine, prompt, params)
    creative = SamplingParams(intent=Intent.CREATIVE, seed=9)
    pairs = [(await answer(steered, p, creative), await answer(engine, p, creative)) for p in PROMPTS]
    assert any(some != others for some, others in pairs)
    assert steered.fingerprint == engine.fingerprint
    assert steered.info.router is not None
    assert engine.info.router is None


def test_one_in_the_models_folder_is_taken_unless_told_otherwise(
    tiny_config: EngineConfig, tiny_folder: Path, router_path: Path
) -> None:
    assert read_base(tiny_config, None).router is None
    in_folder = tiny_folder / "router.safetensors"
    in_folder.write_bytes(router_path.read_bytes())
    try:
        found = read_base(tiny_config, None)
        assert found.router is not None
        assert read_base(dataclasses.replace(tiny_config, router_path=Path("none")), None).router is None
        # The model is the same one with it.
        assert found.digest == read_base(tiny_config, None).digest == folder_digest(tiny_folder)
    finally:
        in_folder.unlink()


def test_one_that_does_not_fit_is_refused(tiny_config: EngineConfig, tmp_path: Path) -> None:
    with pytest.raises(RouterError, match=r"RouterUnreadable: .*No such file"):
        read_base(dataclasses.replace(tiny_config, router_path=tmp_path / "r"), None)
