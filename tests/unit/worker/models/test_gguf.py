import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from zerolayer_worker.models.gguf import GgufError, convert_gguf

HEADS, KV_HEADS, HEAD_DIM, HIDDEN, FFN, LAYERS = 4, 2, 8, 32, 64, 2
TOKENS = ["<|end|>", "<|user|>", "a", "b", "1", "2", "Ġ", "ab", "Ċ", "Ġa"]
MERGES = ["a b", "Ġ a"]


def open_writer(path: Path, architecture: str) -> gguf.GGUFWriter:
    """A writer that already holds the settings and the vocabulary."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(50_000.0)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3] + [1] * (len(TOKENS) - 2))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(0)
    writer.add_pad_token_id(0)
    writer.add_chat_template("{% for m in messages %}<|user|>{{ m['content'] }}<|end|>{% endfor %}")
    return writer


def write_gguf(
    path: Path,
    *,
    architecture: str = "llama",
    quantisation: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    without: str | None = None,
    extra_tensor: str | None = None,
    also: Callable[[gguf.GGUFWriter], None] = lambda _writer: None,
    tied: bool = True,
) -> dict[str, np.ndarray]:
    """Write a tiny random Llama and return its tensors under the names of the Hugging Face folder."""
    writer = open_writer(path, architecture)
    also(writer)
    rng = np.random.default_rng(7)
    expected: dict[str, np.ndarray] = {}

    def add(name: str, hf_name: str, *shape: int, heads: int | None = None) -> None:
        weight = rng.standard_normal(shape, dtype=np.float32) * 0.2
        expected[hf_name] = weight
        stored = weight
        if heads is not None:  # llama.cpp stores the pairs that rotate together as neighbours
            halves = weight.reshape(heads, 2, HEAD_DIM // 2, shape[1])
            stored = halves.transpose(0, 2, 1, 3).reshape(shape)
        if len(shape) == 2 and quantisation != gguf.GGMLQuantizationType.F32:
            writer.add_tensor(name, gguf.quantize(stored, quantisation), raw_dtype=quantisation)
        elif name != without:
            writer.add_tensor(name, stored)

    add("token_embd.weight", "model.embed_tokens.weight", len(TOKENS), HIDDEN)
    add("output_norm.weight", "model.norm.weight", HIDDEN)
    if not tied:
        add("output.weight", "lm_head.weight", len(TOKENS), HIDDEN)
    for layer in range(LAYERS):
        block, there = f"blk.{layer}", f"model.layers.{layer}"
        add(f"{block}.attn_norm.weight", f"{there}.input_layernorm.weight", HIDDEN)
        add(f"{block}.ffn_norm.weight", f"{there}.post_attention_layernorm.weight", HIDDEN)
        query, key = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
        add(f"{block}.attn_q.weight", f"{there}.self_attn.q_proj.weight", query, HIDDEN, heads=HEADS)
        add(f"{block}.attn_k.weight", f"{there}.self_attn.k_proj.weight", key, HIDDEN, heads=KV_HEADS)
        add(f"{block}.attn_v.weight", f"{there}.self_attn.v_proj.weight", key, HIDDEN)
        add(f"{block}.attn_output.weight", f"{there}.self_attn.o_proj.weight", HIDDEN, query)
        add(f"{block}.ffn_gate.weight", f"{there}.mlp.gate_proj.weight", FFN, HIDDEN)
        add(f"{block}.ffn_up.weight", f"{there}.mlp.up_proj.weight", FFN, HIDDEN)
        add(f"{block}.ffn_down.weight", f"{there}.mlp.down_proj.weight", HIDDEN, FFN)
    if extra_tensor:
        writer.add_tensor(extra_tensor, np.ones(4, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


@pytest.mark.parametrize("tied", [True, False])
def test_every_tensor_arrives_under_its_name_in_hugging_face_row_order(tmp_path: Path, *, tied: bool) -> None:
    expected = write_gguf(tmp_path / "m.gguf", tied=tied)

    convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "float32")

    written = load_file(tmp_path / "out" / "model.safetensors")
    assert written.keys() == expected.keys()
    for name, weight in expected.items():
        np.testing.assert_array_equal(written[name].numpy(), weight, err_msg=name)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["tie_word_embeddings"] is tied


def test_quantised_tensors_are_expanded_to_within_their_quantisation_error(tmp_path: Path) -> None:
    expected = write_gguf(tmp_path / "m.gguf", quantisation=gguf.GGMLQuantizationType.Q8_0)

    convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "bfloat16")

    written = load_file(tmp_path / "out" / "model.safetensors")
    assert {tensor.dtype for tensor in written.values()} == {torch.bfloat16}
    for name, weight in expected.items():
        np.testing.assert_allclose(written[name].float().numpy(), weight, atol=0.02, err_msg=name)


def test_transformers_reads_the_folder_and_applies_rope_to_the_right_halves(tmp_path: Path) -> None:
    expected = write_gguf(tmp_path / "m.gguf")

    convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "float32")

    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    config = model.config
    assert config.rope_parameters["rope_theta"] == 50_000.0
    assert (config.head_dim, config.num_key_value_heads, config.rms_norm_eps) == (HEAD_DIM, KV_HEADS, 1e-5)
    assert (config.bos_token_id, config.eos_token_id, config.pad_token_id) == (1, 0, 0)
    assert model.generation_config.eos_token_id == 0
    query = model.model.layers[1].self_attn.q_proj.weight
    np.testing.assert_array_equal(query.detach().numpy(), expected["model.layers.1.self_attn.q_proj.weight"])
    assert torch.isfinite(model(torch.tensor([[1, 2, 3]])).logits).all()
    ids = tokenizer.apply_chat_template([{"role": "user", "content": "ab1"}])["input_ids"]
    assert ids == [1, 7, 4, 0]


def test_tokenizer_file_knows_the_special_tokens(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf")

    convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "float32")

    tokenizer = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    assert tokenizer.encode("<|user|>ab<|end|>").ids == [1, 7, 0]
    assert tokenizer.decode([1, 7, 0]) == "ab"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"architecture": "gpt2"}, "architecture 'gpt2'"),
        ({"extra_tensor": "rope_freqs.weight"}, r"rope_freqs\.weight"),
        ({"extra_tensor": "blk.0.attn_q.bias"}, r"blk\.0\.attn_q\.bias"),
        ({"without": "blk.1.ffn_up.weight"}, r"model\.layers\.1\.mlp\.up_proj\.weight"),
        (
            {"also": lambda writer: writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)},
            r"llama\.rope\.scaling\.type 'yarn'",
        ),
        (
            {"also": lambda writer: writer.add_key_length(2 * HEAD_DIM)},
            rf"llama\.rope\.dimension_count {HEAD_DIM} of {2 * HEAD_DIM}",
        ),
    ],
)
def test_models_that_would_come_out_wrong_are_refused_by_name(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    write_gguf(tmp_path / "m.gguf", **options)

    with pytest.raises(GgufError, match=message):
        convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "float32")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.gguf"]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, share: float) -> None:
    write_gguf(tmp_path / "m.gguf")
    content = (tmp_path / "m.gguf").read_bytes()
    (tmp_path / "m.gguf").write_bytes(content[: int(len(content) * share)])

    with pytest.raises(GgufError, match="not a whole GGUF file"):
        convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "float32")


def test_an_unknown_dtype_and_an_existing_folder_are_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf")

    with pytest.raises(ValueError, match="int4"):
        convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "int4")
    with pytest.raises(FileExistsError, match=str(tmp_path)):
        convert_gguf(tmp_path / "m.gguf", tmp_path, "float32")


def test_others_may_read_what_was_written(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf")

    convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "float32")

    assert (tmp_path / "out").stat().st_mode & 0o055 == 0o055
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in (tmp_path / "out").iterdir())
