"""Which weights and kernels a worker starts with."""

from pathlib import Path
from typing import Any

import pytest
import torch

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.engine import storage
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.storage import choose_storage, sampling_kernels
from zerolayer_worker.models.config import ModelConfig, read_config
from zerolayer_worker.models.native.build import NativeError
from zerolayer_worker.models.quantised import Format

CPU, GPU = torch.device("cpu"), torch.device("cuda")
FITTING = {"hidden_size": 64, "head_dim": 32, "num_attention_heads": 2}


class FakeKernels:
    """Stands for the library; compiling it is another test's."""

    prompts = True

    def __init__(self, threads: int) -> None:
        self.threads = threads


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "Kernels", FakeKernels)


def config(tmp_path: Path, **options: Any) -> EngineConfig:
    return EngineConfig(model_path=tmp_path, served_name="tiny", **options)


@pytest.fixture
def model(tmp_path: Path) -> ModelConfig:
    return read_config(make_tiny_model(tmp_path, **FITTING))


@pytest.fixture
def odd(tmp_path: Path) -> ModelConfig:
    """Heads of 16 numbers, which the native step does not have."""
    return read_config(make_tiny_model(tmp_path))


@pytest.mark.parametrize(
    ("quantization", "layers", "head"),
    [("none", None, None), ("int8", Format.INT8, Format.INT8), ("int4", Format.INT4, Format.INT8)],
)
@pytest.mark.parametrize("kernels", ["auto", "torch", "native"])
def test_formats_and_kernels(
    tmp_path: Path, model: ModelConfig, quantization: str, layers: Format, head: Format, kernels: str
) -> None:
    wanted = config(tmp_path, quantization=quantization, kernels=kernels)
    chosen, opened = choose_storage(wanted, model, CPU, torch.float32)
    assert (chosen.layers, chosen.head) == (layers, head)
    assert chosen.native == chosen.prompts == (opened is not None) == (kernels != "torch")


@pytest.mark.parametrize(
    ("multiplies", "dtype", "fused", "prompts"),
    [
        (True, torch.bfloat16, True, False),
        (False, torch.bfloat16, True, True),
        (True, torch.float32, True, True),
        (False, torch.float32, False, False),
    ],
)
def test_prompts_run_through_what_is_faster(
    tmp_path: Path,
    model: ModelConfig,
    monkeypatch: pytest.MonkeyPatch,
    multiplies: bool,
    dtype: torch.dtype,
    fused: bool,
    prompts: bool,
) -> None:
    """The library multiplies in fp32, and without fused multiply-adds it is slow at many tokens."""
    monkeypatch.setattr(storage, "multiplies_bfloat16", lambda: multiplies)
    monkeypatch.setattr(FakeKernels, "prompts", fused)
    chosen, _ = choose_storage(config(tmp_path), model, CPU, dtype)
    assert (chosen.native, chosen.prompts) == (True, prompts)


@pytest.mark.parametrize("limit", [("_COPY_LIMIT_BYTES", 1000), ("memory_limit", lambda: 1 << 20)])
def test_weights_in_full_precision_are_copied_only_where_there_is_room(
    tmp_path: Path, model: ModelConfig, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, Any]
) -> None:
    monkeypatch.setattr(storage, *limit)
    assert choose_storage(config(tmp_path), model, CPU, torch.float32)[1] is not None
    monkeypatch.setattr(FakeKernels, "prompts", False)
    assert choose_storage(config(tmp_path), model, CPU, torch.float32)[1] is None
    for options in ({"quantization": "int8"}, {"kernels": "native"}):
        assert choose_storage(config(tmp_path, **options), model, CPU, torch.float32)[1] is not None


@pytest.mark.parametrize("kernels", ["auto", "torch"])
def test_decode_steps_on_a_gpu_attend_over_pages(tmp_path: Path, model: ModelConfig, kernels: str) -> None:
    chosen, opened = choose_storage(config(tmp_path, kernels=kernels), model, GPU, torch.bfloat16)
    assert (chosen.paged, chosen.native, opened) == (kernels == "auto", False, None)


def test_without_triton_a_gpu_stays_with_torch(
    tmp_path: Path, model: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "find_spec", lambda _name: None)
    assert not choose_storage(config(tmp_path), model, GPU, torch.bfloat16)[0].paged


def test_an_odd_shape_stays_with_torch(tmp_path: Path, odd: ModelConfig) -> None:
    assert choose_storage(config(tmp_path), odd, CPU, torch.float32)[1] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantization": "int2"}, "quantization must be one of none, int8, int4 \\(is int2\\)"),
        ({"kernels": "fast"}, "kernels one of auto, native, torch \\(is fast\\)"),
        ({"quantization": "int4"}, "quantization int4 is not possible: head_dim 16"),
        ({"kernels": "native"}, "native kernels are not possible: head_dim 16"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, odd: ModelConfig, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        choose_storage(config(tmp_path, **options), odd, CPU, torch.float32)


def test_quantised_weights_are_for_cpus(tmp_path: Path, model: ModelConfig) -> None:
    with pytest.raises(ValueError, match="it is for CPUs"):
        choose_storage(config(tmp_path, quantization="int8"), model, GPU, torch.bfloat16)


def test_without_the_library_decoding_falls_back_and_says_so(
    tmp_path: Path, model: ModelConfig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(_threads: int) -> None:
        raise NativeError("no C++ compiler is installed; install g++ or set CXX")

    monkeypatch.setattr(storage, "Kernels", missing)
    chosen, opened = choose_storage(config(tmp_path, quantization="int8"), model, CPU, torch.float32)
    assert (chosen.layers, chosen.native, opened) == (Format.INT8, False, None)
    assert caplog.records[0].reason == "no C++ compiler is installed; install g++ or set CXX"
    with pytest.raises(NativeError):
        choose_storage(config(tmp_path, kernels="native"), model, CPU, torch.float32)


@pytest.mark.parametrize(
    ("options", "device", "opened"),
    [
        ({}, CPU, True),
        ({}, GPU, False),
        ({"kernels": "torch"}, CPU, False),
        ({"sampler": "naive"}, CPU, False),
    ],
)
def test_any_model_on_a_cpu_chooses_natively(
    tmp_path: Path, options: dict[str, Any], device: torch.device, opened: bool
) -> None:
    assert (sampling_kernels(config(tmp_path, **options), device, None) is not None) == opened


def test_the_library_is_opened_once(tmp_path: Path, model: ModelConfig) -> None:
    _, kernels = choose_storage(config(tmp_path), model, CPU, torch.float32)
    assert sampling_kernels(config(tmp_path), CPU, kernels) is kernels


def test_without_a_compiler_torch_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(threads: int) -> FakeKernels:
        raise NativeError("no C++ compiler is installed")

    monkeypatch.setattr(storage, "Kernels", missing)
    assert sampling_kernels(config(tmp_path), CPU, None) is None
    assert "tokens are chosen through torch" in caplog.text
