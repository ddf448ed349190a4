import json
from pathlib import Path
from typing import Any

import pytest

from zerolayer_dev.testing.tiny_model import TINY
from zerolayer_worker.models.config import ModelFolderError, RopeScaling, read_config

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def write(folder: Path, **overrides: Any) -> Path:
    config = {key: value for key, value in (TINY | overrides).items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("overrides", "attribute", "expected"),
    [
        ({}, "family", "llama"),
        ({"architectures": ["MistralForCausalLM"]}, "family", "mistral"),
        ({"architectures": ["Qwen2ForCausalLM"]}, "qkv_bias", True),
        ({"architectures": ["Qwen2ForCausalLM"]}, "output_bias", False),
        ({"architectures": ["Qwen3ForCausalLM"]}, "qk_norm", True),
        ({"attention_bias": True}, "output_bias", True),
        ({"num_key_value_heads": ...}, "kv_heads", 4),
        ({}, "head_dim", 16),
        ({"head_dim": 32}, "head_dim", 32),
        ({"tie_word_embeddings": True}, "tied_head", True),
        ({"rope_theta": 5e5}, "rope_theta", 5e5),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}}, "rope_theta", 7.0),
        ({"rope_scaling": LLAMA3}, "rope_scaling", RopeScaling(8.0, 1.0, 4.0, 64)),
        ({"rope_parameters": LLAMA3 | {"rope_theta": 9.0}}, "rope_scaling", RopeScaling(8.0, 1.0, 4.0, 64)),
        ({"rope_scaling": {"type": "default"}}, "rope_scaling", None),
        ({"sliding_window": 100}, "max_positions", 100),
        ({"sliding_window": 100, "use_sliding_window": False}, "max_positions", 256),
        ({"eos_token_id": [2, 5]}, "eos_ids", frozenset({2, 5})),
        ({"eos_token_id": None}, "eos_ids", frozenset()),
    ],
)
def test_reads(tmp_path: Path, overrides: dict[str, Any], attribute: str, expected: object) -> None:
    assert getattr(read_config(write(tmp_path, **overrides)), attribute) == expected


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, r"architectures \['GPT2LMHeadModel'\] is not served"),
        ({"architectures": ...}, r"architectures \[\] is not served"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "rope scaling of type 'yarn'"),
        ({"rope_scaling": LLAMA3 | {"factor": None}}, "'llama3' lacks factor"),
        ({"rope_scaling": "linear"}, "rope_scaling must be an object"),
        ({"num_key_value_heads": 3}, "no multiple of num_key_value_heads 3"),
        ({"head_dim": 15}, "head_dim 15 is odd"),
        ({"vocab_size": 0}, "vocab_size must be a positive whole number, not 0"),
        ({"hidden_size": "64"}, "hidden_size must be a positive whole number, not '64'"),
        ({"num_hidden_layers": ...}, "num_hidden_layers must be a positive whole number, not None"),
        ({"num_attention_heads": True}, "num_attention_heads must be a positive whole number"),
    ],
)
def test_refuses_and_names_file_and_key(tmp_path: Path, overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFolderError, match=rf"config\.json: .*{message}"):
        read_config(write(tmp_path, **overrides))


@pytest.mark.parametrize(
    "overrides",
    [{"architectures": 5}, {"rms_norm_eps": [1]}, {"rms_norm_eps": "small"}, {"hidden_act": ["silu"]}],
)
def test_a_value_of_a_wrong_type_is_the_folders_fault(tmp_path: Path, overrides: dict[str, Any]) -> None:
    with pytest.raises(ModelFolderError, match=r"config\.json: a value is of the wrong type: "):
        read_config(write(tmp_path, **overrides))


def test_takes_the_end_tokens_of_the_generation_config_too(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7, 8]}')
    assert read_config(tmp_path).eos_ids == {2, 7, 8}


@pytest.mark.parametrize(("text", "message"), [("{", "not valid JSON"), ("[]", "must hold a JSON object")])
def test_names_a_malformed_file(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelFolderError, match=rf"config\.json: {message}"):
        read_config(tmp_path)


def test_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match=r"config\.json: file is missing"):
        read_config(tmp_path)
