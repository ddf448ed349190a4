"""Models small enough to be made within a test: random weights, a byte-level tokenizer, a chat template."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.weights import expected_shapes

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

TINY: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 259,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "eos_token_id": 2,
}


def tiny_tensors(config: dict[str, Any], folder: Path, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random weights of just the shapes that `config` asks for, large enough for sharp distributions."""
    (folder / "config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(seed)
    tensors: dict[str, torch.Tensor] = {}
    for name, shape in expected_shapes(read_config(folder)).items():
        noise = torch.randn(shape, generator=generator)
        tensors[name] = noise * 0.2 if len(shape) > 1 else 1 + noise * 0.1
    return tensors


def make_tiny_model(folder: Path, *, seed: int = 0, **overrides: Any) -> Path:
    """Writes a complete model folder; `overrides` are keys of `config.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tiny_tensors(TINY | overrides, folder, seed), folder / "model.safetensors")
    write_tokenizer(folder)
    return folder


def write_tokenizer(folder: Path, chat_template: str | None = CHAT_TEMPLATE) -> None:
    """A tokenizer with one token per byte, after the special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*SPECIAL_TOKENS, *alphabet]
    tokenizer = Tokenizer(BPE(vocab={name: i for i, name in enumerate(names)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL_TOKENS])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings: dict[str, Any] = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    if chat_template is not None:
        settings["chat_template"] = chat_template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
