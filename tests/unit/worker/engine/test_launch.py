import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from zerolayer_worker.engine.api import GenerationRequest, LoadCounts, SamplingParams, TextDelta
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.models.folder import ModelFolderError


def test_importing_it_does_not_import_torch() -> None:
    code = "import sys, zerolayer_worker.engine.launch; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_announces_and_times_every_stage(tiny_config: EngineConfig) -> None:
    announced: list[str] = []
    engine = load_engine(tiny_config, announced.append)
    engine.close()
    assert announced == ["load", "compile", "selftest", "settle"] == list(engine.stages)
    assert all(seconds >= 0 for seconds in engine.stages.values())


def test_says_what_is_served(shared_engine: TorchEngine) -> None:
    info = shared_engine.info
    assert (info.name, info.max_model_len, info.vocab_size, info.dtype, info.device) == (
        "tiny", 256, 259, "float32", "cpu",
    )  # fmt: skip
    assert info.digest.startswith("sha256:")
    assert not info.supports_tools
    assert shared_engine.unavailable_intents == {}


def test_its_own_work_does_not_count_as_load(tiny_config: EngineConfig) -> None:
    engine = load_engine(tiny_config, lambda _stage: None)
    stats = engine.stats()
    engine.close()
    assert (stats.busy_share, stats.busy_share_seconds, stats.idle) == (0.0, 0.0, True)
    assert stats.load == LoadCounts()
    assert stats.steps > 0


def test_a_restart_keeps_the_fingerprint_and_another_setting_changes_it(
    tiny_config: EngineConfig, shared_engine: TorchEngine
) -> None:
    found = []
    for config in (tiny_config, replace(tiny_config, prefill_chunk=32)):
        engine = load_engine(config, lambda _stage: None)
        engine.close()
        found.append(engine.fingerprint)
    assert found[0] == shared_engine.fingerprint
    assert found[1] != shared_engine.fingerprint


def test_names_a_folder_that_is_none(tiny_config: EngineConfig, tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match=r"config\.json: file is missing"):
        load_engine(replace(tiny_config, model_path=tmp_path), lambda _stage: None)


def test_refuses_a_longer_context_than_the_models(tiny_config: EngineConfig) -> None:
    with pytest.raises(ValueError, match="max_model_len 257 exceeds the model's own maximum of 256"):
        load_engine(replace(tiny_config, max_model_len=257), lambda _stage: None)


def test_without_warm_up_nothing_runs_but_the_self_test(tiny_config: EngineConfig) -> None:
    engine = load_engine(replace(tiny_config, warmup=False), lambda _stage: None)
    engine.close()
    assert list(engine.stages) == ["load", "selftest"]


@pytest.fixture(params=[{"sampler": "naive"}, {"kernels": "torch"}], ids=["logits", "tiled"])
def with_another_sampler(tiny_config: EngineConfig, request: pytest.FixtureRequest) -> Iterator[TorchEngine]:
    engine = load_engine(replace(tiny_config, **request.param), lambda _stage: None)
    yield engine
    engine.close()


async def test_another_sampler_gives_the_same_answers_under_another_fingerprint(
    with_another_sampler: TorchEngine, shared_engine: TorchEngine
) -> None:
    for params in (SamplingParams(temperature=0.0), SamplingParams(temperature=0.9, top_p=0.9, seed=3)):
        request = GenerationRequest("either", tuple(range(3, 40)), 24, params)
        assert await tokens(with_another_sampler, request) == await tokens(shared_engine, request)
    assert with_another_sampler.fingerprint != shared_engine.fingerprint


async def tokens(engine: TorchEngine, request: GenerationRequest) -> list[int]:
    return [
        token
        async for event in engine.generate(request)
        if isinstance(event, TextDelta)
        for token in event.token_ids
    ]
