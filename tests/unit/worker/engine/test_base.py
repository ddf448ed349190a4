"""An anchor is applied to the norms at load, names itself, and is refused before the weights are read."""

import asyncio
import dataclasses
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from zerolayer_dev.testing.tiny_adapter import PREFIX, make_tiny_adapter
from zerolayer_dev.testing.tiny_anchor import ANY_DIGEST, make_tiny_bundle, tiny_metadata
from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.anchors.bundle import write_bundle
from zerolayer_worker.common.anchor import BundleError, BundleReason
from zerolayer_worker.common.errors import RefusalError
from zerolayer_worker.engine.api import GenerationRequest, SamplingParams, TextDelta
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.digest import folder_digest
from zerolayer_worker.models.lora import merge_adapter, read_adapter

PROMPT = tuple(range(10, 40))


@pytest.fixture(scope="module")
def bundle_path(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("anchor") / "a.safetensors"
    make_tiny_bundle(path, tiny_folder, dtype="float32")
    return path


def answer(engine: TorchEngine) -> tuple[str, tuple[float, ...]]:
    """Text and log-probabilities of a greedy answer."""
    request = GenerationRequest("r", PROMPT, 8, SamplingParams(temperature=0.0, logprobs=0))

    async def ask() -> list[TextDelta]:
        return [event async for event in engine.generate(request) if isinstance(event, TextDelta)]

    deltas = asyncio.run(ask())
    return "".join(d.text for d in deltas), tuple(entry.logprob for d in deltas for entry in d.logprobs)


def opened(config: EngineConfig) -> TorchEngine:
    return load_engine(config, lambda _stage: None)


def test_answers_are_those_of_a_model_with_these_norms(
    tiny_config: EngineConfig, shared_engine: TorchEngine, bundle_path: Path, tmp_path: Path
) -> None:
    config = dataclasses.replace(tiny_config, anchor_path=bundle_path)
    announced: list[str] = []
    anchored = load_engine(config, announced.append)
    folder = make_tiny_model(tmp_path / "merged", eos_token_id=100_000)
    weights = load_file(folder / "model.safetensors")
    save_file(weights | load_file(bundle_path), folder / "model.safetensors")
    merged = opened(dataclasses.replace(tiny_config, model_path=folder))
    try:
        assert answer(anchored) == answer(merged) != answer(shared_engine)
    finally:
        anchored.close()
        merged.close()
    assert announced == ["anchor", "load", "compile", "selftest", "settle"] == list(anchored.stages)


def test_the_anchor_is_named_and_changes_the_fingerprint(
    tiny_config: EngineConfig,
    tiny_folder: Path,
    shared_engine: TorchEngine,
    bundle_path: Path,
    tmp_path: Path,
) -> None:
    bundles = {bundle_path: make_tiny_bundle(bundle_path, tiny_folder, dtype="float32")}
    bundles[tmp_path / "b"] = make_tiny_bundle(tmp_path / "b", tiny_folder, dtype="float32", version="v2")
    fingerprints = {shared_engine.fingerprint}
    for path, bundle in bundles.items():
        version, digest = bundle.anchor.version, bundle.digest
        config = dataclasses.replace(
            tiny_config, anchor_path=path, anchor_version=version, anchor_digest=digest
        )
        engine = opened(config)
        engine.close()
        assert engine.info.anchor == bundle.anchor
        assert engine.info.digest == shared_engine.info.digest
        fingerprints.add(engine.fingerprint)
    assert shared_engine.info.anchor is None
    assert len(fingerprints) == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"anchor_digest": ANY_DIGEST}, BundleReason.DIGEST_MISMATCH),
        ({"anchor_version": "v2"}, BundleReason.VERSION_MISMATCH),
        ({"anchor_path": Path("/nowhere")}, BundleReason.UNREADABLE),
        ({}, BundleReason.FOR_ANOTHER_MODEL),
    ],
)
def test_refused_before_the_weights_are_read(
    tiny_config: EngineConfig,
    bundle_path: Path,
    tmp_path: Path,
    change: dict[str, Path | str],
    reason: BundleReason,
) -> None:
    folder = make_tiny_model(tmp_path / "other", seed=1)
    (folder / "model.safetensors").write_bytes(b"no weights")
    config = dataclasses.replace(tiny_config, model_path=folder, anchor_path=bundle_path)
    with pytest.raises(BundleError) as caught:
        opened(dataclasses.replace(config, **change))  # type: ignore[arg-type]
    assert caught.value.reason is reason


def test_values_that_the_served_type_cannot_hold(
    tiny_config: EngineConfig, tiny_folder: Path, tmp_path: Path
) -> None:
    """3.4e38 is finite in float32 and rounds to infinity in bfloat16."""
    metadata = tiny_metadata(folder_digest(tiny_folder), dtype="float32")
    write_bundle(tmp_path / "a", {"model.norm.weight": torch.full((64,), 3.4e38)}, metadata)
    config = dataclasses.replace(tiny_config, anchor_path=tmp_path / "a", dtype="bfloat16")
    with pytest.raises(BundleError) as caught:
        opened(config)
    assert caught.value.reason is BundleReason.NOT_FINITE


def test_an_adapter_is_merged_beside_an_anchor(
    tiny_config: EngineConfig, shared_engine: TorchEngine, bundle_path: Path, tmp_path: Path
) -> None:
    """The norms are the anchor's, also where the adapter brings its own and leaves them out."""
    norm = {f"{PREFIX}model.norm.weight": torch.full((64,), 2.0)}
    adapter = make_tiny_adapter(tmp_path / "adapter", norm)
    config = dataclasses.replace(tiny_config, anchor_path=bundle_path, lora_path=adapter)
    with pytest.raises(RefusalError, match=r"^AdapterTouchesAnchor: .*model\.norm\.weight \(1 in all\)"):
        opened(config)
    both = opened(dataclasses.replace(config, skip_ska_lora=True))
    folder = make_tiny_model(tmp_path / "merged", eos_token_id=100_000)
    weights = load_file(folder / "model.safetensors")
    merge_adapter(read_adapter(adapter, read_config(folder), owned=(), leave_out=False), weights)
    save_file(weights | load_file(bundle_path), folder / "model.safetensors")
    merged = opened(dataclasses.replace(tiny_config, model_path=folder))
    try:
        assert answer(both) == answer(merged) != answer(shared_engine)
    finally:
        both.close()
        merged.close()
    assert both.info.lora is not None
    assert both.info.anchor is not None
    assert both.fingerprint not in {merged.fingerprint, shared_engine.fingerprint}
