"""An adapter is merged as W + (alpha / r) · B · A, and what can't be is refused before weights are read."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from zerolayer_dev.testing.tiny_adapter import PREFIX, RANK, TARGETS, make_tiny_adapter, tiny_factors
from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.config import ModelConfig, read_config
from zerolayer_worker.models.lora import Adapter, merge_adapter, read_adapter
from zerolayer_worker.models.lora_config import AdapterError, AdapterReason

Q = "model.layers.0.self_attn.q_proj"
NORM = "model.layers.0.input_layernorm.weight"
FINAL_NORM = "model.norm.weight"


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def config(base: Path) -> ModelConfig:
    return read_config(base)


@pytest.fixture
def tensors(base: Path) -> dict[str, torch.Tensor]:
    return load_file(base / "model.safetensors")


def read(folder: Path, config: ModelConfig, **options: Any) -> Adapter:
    return read_adapter(folder, config, **{"owned": (), "leave_out": False} | options)


def refusal(folder: Path, config: ModelConfig, **options: Any) -> AdapterError:
    with pytest.raises(AdapterError) as caught:
        read(folder, config, **options)
    return caught.value


def product(module: str) -> torch.Tensor:
    factors = tiny_factors()
    b, a = (factors[f"{PREFIX}{module}.lora_{side}.weight"].double() for side in "BA")
    return b @ a


@pytest.mark.parametrize(
    ("overrides", "scale"),
    [({}, 8 / RANK), ({"lora_alpha": 3}, 3 / RANK), ({"use_rslora": True}, 8 / math.sqrt(RANK))],
)
def test_targets_gain_the_scaled_product_and_nothing_else_changes(
    tmp_path: Path,
    config: ModelConfig,
    tensors: dict[str, torch.Tensor],
    overrides: dict[str, Any],
    scale: float,
) -> None:
    adapter = read(make_tiny_adapter(tmp_path, **overrides), config)
    merged = dict(tensors)
    merge_adapter(adapter, merged)
    for name, weight in tensors.items():
        module = name.removesuffix(".weight")
        expected = weight.double() + (scale * product(module) if module in TARGETS else 0)
        assert torch.allclose(merged[name].double(), expected, rtol=1e-5, atol=1e-6)
        assert (merged[name] is weight) == (module not in TARGETS)


def test_the_rank_is_that_of_each_pair(tmp_path: Path, config: ModelConfig) -> None:
    """As `rank_pattern` has it."""
    tensors = {
        f"{PREFIX}model.layers.0.mlp.up_proj.lora_A.weight": torch.ones(2, 64),
        f"{PREFIX}model.layers.0.mlp.up_proj.lora_B.weight": torch.ones(96, 2),
    }
    adapter = read(make_tiny_adapter(tmp_path, tensors, rank_pattern={"up_proj": 2}), config)
    assert adapter.pairs["model.layers.0.mlp.up_proj.weight"].scale == 8 / 2
    assert adapter.pairs[f"{Q}.weight"].scale == 8 / RANK


def test_merges_in_fp32_and_keeps_the_type(
    tmp_path: Path, config: ModelConfig, tensors: dict[str, torch.Tensor]
) -> None:
    halves = {name: tensor.bfloat16() for name, tensor in tensors.items()}
    merged = dict(halves)
    merge_adapter(read(make_tiny_adapter(tmp_path), config), merged)
    expected = halves[f"{Q}.weight"].float() + 2 * product(Q).float()
    assert torch.equal(merged[f"{Q}.weight"], expected.bfloat16())


@pytest.mark.parametrize(
    "spelt", ["{}.weight", "{}.modules_to_save.weight", "{}.modules_to_save.default.weight"]
)
def test_a_saved_module_replaces_the_models(
    tmp_path: Path, config: ModelConfig, tensors: dict[str, torch.Tensor], spelt: str
) -> None:
    saved = {f"{PREFIX}{spelt.format('model.norm')}": torch.full((64,), 3.0)}
    merge_adapter(read(make_tiny_adapter(tmp_path, saved), config), tensors)
    assert torch.equal(tensors[FINAL_NORM], torch.full((64,), 3.0))


@pytest.mark.parametrize(
    "touching",
    [
        {f"{PREFIX}{NORM}": torch.ones(64)},
        {
            f"{PREFIX}model.layers.0.input_layernorm.lora_A.weight": torch.ones(2, 64),
            f"{PREFIX}model.layers.0.input_layernorm.lora_B.weight": torch.ones(1, 2),
        },
    ],
)
def test_what_an_anchor_owns_is_refused_or_left_out(
    tmp_path: Path,
    config: ModelConfig,
    tensors: dict[str, torch.Tensor],
    touching: dict[str, torch.Tensor],
) -> None:
    folder = make_tiny_adapter(tmp_path, touching)
    error = refusal(folder, config, owned={NORM, FINAL_NORM})
    assert error.reason is AdapterReason.TOUCHES_ANCHOR
    assert f"{NORM} (1 in all) is a parameter of the anchor" in error.message
    assert "--skip-ska-lora" in error.message
    adapter = read(folder, config, owned={NORM, FINAL_NORM}, leave_out=True)
    assert adapter.left_out == (NORM,)
    before = tensors[NORM]
    merge_adapter(adapter, tensors)
    assert tensors[NORM] is before
    assert adapter.pairs.keys() == {f"{module}.weight" for module in TARGETS}


def test_norms_that_the_anchor_does_not_own_are_the_adapters(tmp_path: Path, config: ModelConfig) -> None:
    folder = make_tiny_adapter(tmp_path, {f"{PREFIX}{NORM}": torch.ones(64)})
    assert read(folder, config, owned={FINAL_NORM}).saved == {NORM: f"{PREFIX}{NORM}"}


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ({"peft_type": "IA3"}, 'peft_type "IA3"'),
        ({"bias": "all"}, 'bias "all"'),
        ({"use_dora": True}, "use_dora true"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out true"),
        ({"alpha_pattern": {"q_proj": 2}}, "alpha_pattern {"),
        ({"layer_replication": [[0, 2]]}, "layer_replication [[0,2]]"),
        ({"init_lora_weights": "pissa"}, 'init_lora_weights "pissa"'),
        ({"invented_tomorrow": 1}, "invented_tomorrow 1"),
    ],
)
def test_settings_that_are_not_merged(
    tmp_path: Path, config: ModelConfig, overrides: dict[str, Any], named: str
) -> None:
    error = refusal(make_tiny_adapter(tmp_path, **overrides), config)
    assert (error.reason, f"{named}" in error.message) == (AdapterReason.UNSUPPORTED, True), error


@pytest.mark.parametrize(
    ("tensors", "reason", "named"),
    [
        (
            {f"{PREFIX}model.layers.9.mlp.up_proj.weight": (96, 64)},
            AdapterReason.FOR_ANOTHER_MODEL,
            "no parameter",
        ),
        ({f"{PREFIX}lm_head.weight": (3, 64)}, AdapterReason.FOR_ANOTHER_MODEL, "expected [259, 64]"),
        ({f"{PREFIX}{Q}.lora_B.weight": (65, RANK)}, AdapterReason.FOR_ANOTHER_MODEL, "[65, 64], expected"),
        ({f"{PREFIX}{Q}.lora_B.weight": (64, 3)}, AdapterReason.FOR_ANOTHER_MODEL, "expected [64, 64]"),
        ({f"{PREFIX}model.norm.lora_A.weight": (RANK, 64)}, AdapterReason.UNREADABLE, "one factor of two"),
        (
            {f"{PREFIX}model.norm.lora_{side}.weight": (1, 1) for side in "AB"},
            AdapterReason.UNSUPPORTED,
            "is no matrix",
        ),
        (
            {f"{PREFIX}model.embed_tokens.lora_embedding_A": (4, 259)},
            AdapterReason.UNSUPPORTED,
            "lora_embedding_A",
        ),
        ({f"{PREFIX}{Q}.lora_magnitude_vector.weight": (64,)}, AdapterReason.UNSUPPORTED, "magnitude_vector"),
        ({f"{PREFIX}{Q}.lora_B.bias": (64,)}, AdapterReason.UNSUPPORTED, "lora_B.bias"),
        ({"model.norm.weight": (64,)}, AdapterReason.UNSUPPORTED, "model.norm.weight is not merged"),
    ],
)
def test_tensors_that_do_not_fit(
    tmp_path: Path,
    config: ModelConfig,
    tensors: dict[str, tuple[int, ...]],
    reason: AdapterReason,
    named: str,
) -> None:
    made = {name: torch.ones(shape) for name, shape in tensors.items()}
    error = refusal(make_tiny_adapter(tmp_path, made), config)
    assert error.reason is reason
    assert named in error.message


def test_files_that_are_missing_or_broken(tmp_path: Path, config: ModelConfig) -> None:
    assert refusal(tmp_path / "none", config).reason is AdapterReason.UNREADABLE
    folder = make_tiny_adapter(tmp_path / "a")
    (folder / "adapter_model.safetensors").write_bytes(b"no tensors")
    assert refusal(folder, config).reason is AdapterReason.UNREADABLE
    (folder / "adapter_model.safetensors").unlink()
    assert refusal(folder, config).reason is AdapterReason.UNREADABLE
    (folder / "adapter_config.json").write_text('{"r": 4}')
    assert "peft_type is missing" in refusal(folder, config).message


def test_values_that_are_not_finite(
    tmp_path: Path, config: ModelConfig, tensors: dict[str, torch.Tensor]
) -> None:
    key = f"{PREFIX}{Q}.lora_A.weight"
    adapter = read(make_tiny_adapter(tmp_path, {key: torch.full((RANK, 64), math.nan)}), config)
    with pytest.raises(AdapterError, match=f"{Q}.weight has values that are not finite") as caught:
        merge_adapter(adapter, tensors)
    assert caught.value.reason is AdapterReason.NOT_FINITE


def test_the_digest_is_of_configuration_and_tensors(tmp_path: Path, config: ModelConfig) -> None:
    made = [
        make_tiny_adapter(tmp_path / "a"),
        make_tiny_adapter(tmp_path / "b"),
        make_tiny_adapter(tmp_path / "c", lora_alpha=9),
        make_tiny_adapter(tmp_path / "d", {f"{PREFIX}{FINAL_NORM}": torch.ones(64)}),
    ]
    digests = [read(folder, config).digest for folder in made]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
