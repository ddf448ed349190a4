import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from zerolayer_dev.testing.tiny_model import TINY
from zerolayer_worker.models.config import ConfigFile, GenerationConfigFile, read_config
from zerolayer_worker.models.folder import ModelFolderError
from zerolayer_worker.models.rope_config import LinearScaling, Llama3Scaling, RopeObject, YarnScaling

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
YARN_MAGNITUDE = 0.1 * math.log(4.0) + 1.0
MISTRAL = {"architectures": ["MistralForCausalLM"]}
SMOLLM3 = {"architectures": ["SmolLM3ForCausalLM"]}
QWEN2 = {"architectures": ["Qwen2ForCausalLM"]}


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
        ({"rope_scaling": LLAMA3}, "rope_scaling", Llama3Scaling(8.0, 1.0, 4.0, 64)),
        ({"rope_parameters": LLAMA3 | {"rope_theta": 9.0}}, "rope_scaling", Llama3Scaling(8.0, 1.0, 4.0, 64)),
        ({"rope_scaling": {"type": "default"}}, "rope_scaling", None),
        ({"rope_scaling": {"type": "linear", "factor": 4}}, "rope_scaling", LinearScaling(4.0)),
        ({"rope_scaling": YARN}, "rope_scaling", YarnScaling(4.0, 128, 32.0, 1.0, YARN_MAGNITUDE, True)),
        (
            {"rope_scaling": YARN | {"attention_factor": 1.0, "beta_fast": 8, "truncate": False}},
            "rope_scaling",
            YarnScaling(4.0, 128, 8.0, 1.0, 1.0, False),
        ),
        (
            {"rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}},
            "rope_scaling",
            YarnScaling(4.0, 128, 32.0, 1.0, 1.0, True),
        ),
        (
            {"rope_scaling": YARN, "original_max_position_embeddings": 64},
            "rope_scaling",
            YarnScaling(4.0, 64, 32.0, 1.0, YARN_MAGNITUDE, True),
        ),
        ({"rope_scaling": YARN}, "max_positions", 512),
        ({"sliding_window": 100}, "max_positions", 100),
        (MISTRAL | {"sliding_window": 100}, "max_positions", 100),
        (MISTRAL | {"sliding_window": None, "max_position_embeddings": 9000}, "max_positions", 9000),
        # What `transformers` takes where the key is not there.
        (MISTRAL | {"max_position_embeddings": 9000}, "max_positions", 4096),
        (QWEN2 | {"sliding_window": 100}, "max_positions", 256),
        (QWEN2 | {"sliding_window": 100, "use_sliding_window": False}, "max_positions", 256),
        (QWEN2 | {"sliding_window": 100, "use_sliding_window": True}, "max_positions", 100),
        (
            QWEN2 | {"sliding_window": 100, "use_sliding_window": True, "max_window_layers": 2},
            "max_positions",
            256,
        ),
        (
            QWEN2
            | {"sliding_window": 100, "use_sliding_window": True, "layer_types": ["full_attention"] * 2},
            "max_positions",
            256,
        ),
        ({"architectures": ["Qwen3ForCausalLM"]}, "head_dim", 128),
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
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "'yarn' lacks original_max_position"),
        ({"rope_scaling": YARN | {"beta_fast": 1, "beta_slow": 2}}, "beta_fast 1.0 must be greater"),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "rope scaling of type 'dynamic'"),
        ({"rope_scaling": {"type": "linear"}}, "'linear' lacks factor"),
        ({"rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 2}}, "'linear' with beta_fast"),
        (SMOLLM3 | {"no_rope_layers": [1]}, "no_rope_layers has 1 entries"),
        (MISTRAL | {"attention_bias": True}, "attention_bias true"),
        ({"layer_types": ["chunked_attention"]}, "layer_types with 'chunked_attention'"),
        ({"rope_scaling": LLAMA3 | {"factor": None}}, "'llama3' lacks factor"),
        ({"rope_scaling": {"rope_type": "yarn", "beta_fast": 32}}, "'yarn' lacks factor"),
        ({"rope_scaling": LLAMA3 | {"attention_factor": 2.0}}, "'llama3' with attention_factor"),
        ({"rope_scaling": LLAMA3 | {"high_freq_factor": 1}}, "high_freq_factor 1.0 must be greater"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e6}}}, "'default' with full_attention"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor 0.5"),
        ({"num_key_value_heads": 3}, "no multiple of num_key_value_heads 3"),
        ({"head_dim": 15}, "head_dim 15 is not even"),
        ({"hidden_size": 2, "num_attention_heads": 4}, "head_dim 0 is not even and positive"),
        ({"vocab_size": 0}, "vocab_size: Input should be greater than 0, not 0"),
        ({"hidden_size": "64"}, 'hidden_size: Input should be a valid integer, not "64"'),
        ({"num_hidden_layers": ...}, "num_hidden_layers is missing"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers: Input should be less than or equal to 10000"),
    ],
)
def test_refuses_and_names_file_and_key(tmp_path: Path, overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFolderError, match=rf"config\.json: .*{message}"):
        read_config(write(tmp_path, **overrides))


def size(value: object) -> bool:
    return type(value) is int and 0 < value < 2**31


def layers(value: object) -> bool:
    return size(value) and value <= 10_000


def number(value: object) -> bool:
    return type(value) in {int, float} and abs(value) <= sys.float_info.max


def positive(value: object) -> bool:
    return number(value) and value > 0


def flag(value: object) -> bool:
    return type(value) is bool


def text(value: object) -> bool:
    return type(value) is str


def texts(value: object) -> bool:
    return isinstance(value, list) and all(map(text, value))


def mapping(value: object) -> bool:
    return isinstance(value, dict)


def ids(value: object) -> bool:
    return all(type(each) is int and each >= 0 for each in (value if isinstance(value, list) else [value]))


KINDS: dict[str, Callable[[object], bool]] = {
    "architectures": texts,
    "vocab_size": size,
    "hidden_size": size,
    "intermediate_size": size,
    "num_hidden_layers": layers,
    "num_attention_heads": size,
    "num_key_value_heads": size,
    "head_dim": size,
    "max_position_embeddings": size,
    "original_max_position_embeddings": size,
    "sliding_window": size,
    "no_rope_layers": lambda value: (
        isinstance(value, list) and all(type(each) is int and each in {0, 1} for each in value)
    ),
    "no_rope_layer_interval": size,
    "max_window_layers": lambda value: type(value) is int and value >= 0,
    "layer_types": texts,
    "use_sliding_window": flag,
    "rms_norm_eps": positive,
    "rope_theta": positive,
    "rope_scaling": mapping,
    "rope_parameters": mapping,
    "partial_rotary_factor": number,
    "tie_word_embeddings": flag,
    "attention_bias": flag,
    "mlp_bias": flag,
    "hidden_act": text,
    "eos_token_id": ids,
}
ROPE_KINDS: dict[str, Callable[[object], bool]] = {
    "rope_type": text,
    "type": text,
    "rope_theta": positive,
    "partial_rotary_factor": number,
    "factor": positive,
    "low_freq_factor": positive,
    "high_freq_factor": positive,
    "original_max_position_embeddings": size,
    "beta_fast": positive,
    "beta_slow": positive,
    "attention_factor": positive,
    "mscale": positive,
    "mscale_all_dim": positive,
    "truncate": flag,
}
json_values = st.recursive(
    st.booleans()
    | st.integers()
    | st.sampled_from([0, -1, 10**400, 2**31])
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["1", "true", "false", "10000.0", "llama3"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


def refused(folder: Path, key: str, **overrides: Any) -> None:
    with pytest.raises(ModelFolderError) as caught:
        read_config(write(folder, **overrides))
    assert f"{folder / 'config.json'}: {key}" in str(caught.value)


def test_every_key_that_is_read_has_a_kind() -> None:
    assert KINDS.keys() | {"quantization_config"} == ConfigFile.model_fields.keys()
    assert ROPE_KINDS.keys() == RopeObject.model_fields.keys()
    assert GenerationConfigFile.model_fields.keys() == {"eos_token_id"}


@pytest.mark.parametrize("key", sorted(KINDS))
def test_a_value_of_another_kind_is_refused_by_its_key(tmp_path_factory: Any, key: str) -> None:
    folder = tmp_path_factory.mktemp("model")

    @given(json_values.filter(lambda value: not KINDS[key](value)))
    @example({})
    @example([])
    @example("")
    def probe(value: object) -> None:
        assume(not KINDS[key](value))
        refused(folder, key, **{key: value})

    probe()


@pytest.mark.parametrize("parent", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("key", sorted(ROPE_KINDS))
def test_so_is_one_of_the_rotary_embeddings(tmp_path_factory: Any, key: str, parent: str) -> None:
    folder = tmp_path_factory.mktemp("model")

    @given(json_values.filter(lambda value: not ROPE_KINDS[key](value)))
    @example({})
    def probe(value: object) -> None:
        refused(folder, f"{parent}.{key}", **{parent: LLAMA3 | {key: value}})

    probe()


@pytest.mark.parametrize("key", sorted(KINDS.keys() | {"quantization_config"}))
def test_null_is_as_good_as_absent(tmp_path: Path, key: str) -> None:
    outcomes: list[object] = []
    for value in (None, ...):
        try:
            outcomes.append(read_config(write(tmp_path, **{key: value})))
        except ModelFolderError as error:
            outcomes.append(str(error).split(": ")[1].split()[0])
    assert outcomes[0] == outcomes[1]


def test_takes_the_end_tokens_of_the_generation_config_too(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7, 8]}')
    assert read_config(tmp_path).eos_ids == {2, 7, 8}


@pytest.mark.parametrize("value", ['"2"', "2.5", "true", "[2, {}]", "-1", "{}"])
def test_names_the_generation_config(tmp_path: Path, value: str) -> None:
    write(tmp_path)
    (tmp_path / "generation_config.json").write_text(f'{{"eos_token_id": {value}}}')
    with pytest.raises(ModelFolderError, match=r"generation_config\.json: eos_token_id"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 10_000, "not valid JSON"),
        (b"[]", "must hold a JSON object"),
        (b"5", "must hold a JSON object"),
    ],
)
def test_names_a_malformed_file(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ModelFolderError, match=rf"config\.json: {message}"):
        read_config(tmp_path)


def test_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match=r"config\.json: file is missing"):
        read_config(tmp_path)
