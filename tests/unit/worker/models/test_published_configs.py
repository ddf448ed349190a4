"""The configuration files of models as their makers publish them."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.rope_config import Llama3Scaling, YarnScaling

YARN_MAGNITUDE = 0.1 * math.log(4.0) + 1.0
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA31 = LLAMA3 | {"original_max_position_embeddings": 8192}
# What the hub's own files hold, of the keys that matter or might.
PUBLISHED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Llama-3.2-1B-Instruct": (
        {
            "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
            "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "head_dim": 64,
            "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
            "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": False,
            "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
            "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
            "rope_scaling": LLAMA31 | {"factor": 32.0}, "rope_theta": 500000.0,
            "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 128256,
        },
        {
            "head_dim": 64, "tied_head": True, "max_positions": 131072, "rope_theta": 5e5,
            "rope_scaling": Llama3Scaling(32.0, 1.0, 4.0, 8192), "eos_ids": {128001, 128008, 128009},
        },
    ),
    "Llama-3.1-8B-Instruct": (
        {
            "architectures": ["LlamaForCausalLM"], "attention_bias": False, "hidden_act": "silu",
            "eos_token_id": [128001, 128008, 128009], "hidden_size": 4096, "intermediate_size": 14336,
            "max_position_embeddings": 131072, "mlp_bias": False, "num_attention_heads": 32,
            "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
            "rope_scaling": LLAMA31, "rope_theta": 500000.0, "tie_word_embeddings": False,
            "vocab_size": 128256,
        },
        {"head_dim": 128, "tied_head": False, "rope_scaling": Llama3Scaling(8.0, 1.0, 4.0, 8192)},
    ),
    "SmolLM2-135M-Instruct": (
        {
            "architectures": ["LlamaForCausalLM"], "attention_bias": False, "bos_token_id": 1,
            "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 576,
            "intermediate_size": 1536, "is_llama_config": True, "max_position_embeddings": 8192,
            "mlp_bias": False, "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
            "pad_token_id": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": False,
            "rope_scaling": None, "rope_theta": 100000, "tie_word_embeddings": True,
            "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}, "vocab_size": 49152,
        },
        {"head_dim": 64, "tied_head": True, "max_positions": 8192, "rope_theta": 1e5, "rope_scaling": None},
    ),
    "SmolLM3-3B": (
        {
            "architectures": ["SmolLM3ForCausalLM"], "attention_bias": False, "eos_token_id": 128012,
            "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 11008,
            "layer_types": ["full_attention"] * 36, "max_position_embeddings": 65536,
            "max_window_layers": 28, "mlp_bias": False, "no_rope_layer_interval": 4,
            "no_rope_layers": [1, 1, 1, 0] * 9, "num_attention_heads": 16, "num_hidden_layers": 36,
            "num_key_value_heads": 4, "pretraining_tp": 2, "rms_norm_eps": 1e-06, "rope_scaling": None,
            "rope_theta": 5000000.0, "sliding_window": None, "use_sliding_window": False,
            "vocab_size": 128256,
        },
        {"tied_head": True, "max_positions": 65536, "unrotated": frozenset(range(3, 36, 4))},
    ),
    "Mistral-7B-v0.1": (
        {
            "architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
            "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
            "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32,
            "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
            "tie_word_embeddings": False, "vocab_size": 32000,
        },
        {"max_positions": 4096, "head_dim": 128, "qkv_bias": False},
    ),
    "Mistral-7B-Instruct-v0.3": (
        {
            "architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
            "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
            "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32,
            "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
            "sliding_window": None, "tie_word_embeddings": False, "vocab_size": 32768,
        },
        {"max_positions": 32768, "rope_theta": 1e6},
    ),
    "Qwen2.5-0.5B-Instruct": (
        {
            "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
            "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864,
            "max_position_embeddings": 32768, "max_window_layers": 21, "num_attention_heads": 14,
            "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
            "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": True,
            "use_sliding_window": False, "vocab_size": 151936,
        },
        {"max_positions": 32768, "head_dim": 64, "qkv_bias": True, "output_bias": False, "tied_head": True},
    ),
    "Qwen2.5-7B-Instruct with the YaRN of its README": (
        {
            "architectures": ["Qwen2ForCausalLM"], "hidden_act": "silu", "hidden_size": 3584,
            "intermediate_size": 18944, "max_position_embeddings": 32768, "max_window_layers": 28,
            "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
            "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
            "tie_word_embeddings": False, "use_mrope": False, "use_sliding_window": False,
            "vocab_size": 152064,
            "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"},
        },
        {
            "max_positions": 131072,
            "rope_scaling": YarnScaling(4.0, 32768, 32.0, 1.0, YARN_MAGNITUDE, truncate=True),
        },
    ),
    "Qwen3-0.6B": (
        {
            "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
            "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
            "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960,
            "max_window_layers": 28, "num_attention_heads": 16, "num_hidden_layers": 28,
            "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000,
            "sliding_window": None, "tie_word_embeddings": True, "use_sliding_window": False,
            "vocab_size": 151936,
        },
        {"head_dim": 128, "qk_norm": True, "qkv_bias": False, "tied_head": True, "max_positions": 40960},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("file", "expected"), PUBLISHED.values(), ids=PUBLISHED.keys())
def test_reads_what_is_published(tmp_path: Path, file: dict[str, Any], expected: dict[str, Any]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(file))
    config = read_config(tmp_path)
    assert {name: getattr(config, name) for name in expected} == expected
