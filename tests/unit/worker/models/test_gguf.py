import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.gguf import GgufError, convert_gguf
from zerolayer_worker.models.rope_config import LinearScaling, Llama3Scaling, YarnScaling
from zerolayer_worker.models.weights import expected_shapes

HEADS, KV_HEADS, HEAD_DIM, HIDDEN, FFN, LAYERS = 4, 2, 8, 32, 64, 2
OWN_PARTS = {
    "qwen2": (
        ("attn_q.bias", "q_proj.bias", HEADS * HEAD_DIM),
        ("attn_k.bias", "k_proj.bias", KV_HEADS * HEAD_DIM),
        ("attn_v.bias", "v_proj.bias", KV_HEADS * HEAD_DIM),
    ),
    "qwen3": (
        ("attn_q_norm.weight", "q_norm.weight", HEAD_DIM),
        ("attn_k_norm.weight", "k_norm.weight", HEAD_DIM),
    ),
}
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
    divisors: np.ndarray | None = None,
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
        if (
            heads is not None and architecture == "llama"
        ):  # llama.cpp stores the pairs that rotate together as neighbours
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
        for part, hf_part, size in OWN_PARTS.get(architecture, ()):
            add(f"{block}.{part}", f"{there}.self_attn.{hf_part}", size)
        add(f"{block}.ffn_gate.weight", f"{there}.mlp.gate_proj.weight", FFN, HIDDEN)
        add(f"{block}.ffn_up.weight", f"{there}.mlp.up_proj.weight", FFN, HIDDEN)
        add(f"{block}.ffn_down.weight", f"{there}.mlp.down_proj.weight", HIDDEN, FFN)
    if divisors is not None:
        writer.add_tensor("rope_freqs.weight", divisors.astype(np.float32))
    if extra_tensor:
        writer.add_tensor(extra_tensor, np.ones(4, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_every_tensor_arrives_under_its_name_in_hugging_face_row_order(
    tmp_path: Path, *, tied: bool, architecture: str
) -> None:
    expected = write_gguf(tmp_path / "m.gguf", tied=tied, architecture=architecture)

    convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "float32")

    written = load_file(tmp_path / "out" / "model.safetensors")
    assert written.keys() == expected.keys()
    for name, weight in expected.items():
        np.testing.assert_array_equal(written[name].numpy(), weight, err_msg=name)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["tie_word_embeddings"] is tied
    # The worker finds every tensor that it expects, and none that it does not know.
    ours = read_config(tmp_path / "out")
    assert ours.family == architecture
    assert written.keys() == expected_shapes(ours).keys()
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    assert model.config.model_type == architecture
    assert torch.isfinite(model(torch.tensor([[1, 2, 3]])).logits).all()


def test_quantised_tensors_are_expanded_to_within_their_quantisation_error(tmp_path: Path) -> None:
    expected = write_gguf(tmp_path / "m.gguf", quantisation=gguf.GGMLQuantizationType.Q8_0)

    convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "bfloat16")

    written = load_file(tmp_path / "out" / "model.safetensors")
    assert {tensor.dtype for tensor in written.values()} == {torch.bfloat16}
    for name, weight in expected.items():
        np.testing.assert_allclose(written[name].float().numpy(), weight, atol=0.02, err_msg=name)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        ("F16", 0.001),
        ("BF16", 0.01),
        ("Q4_0", 0.15),
        ("Q4_1", 0.1),
        ("Q5_0", 0.08),
        ("Q5_1", 0.05),
        ("Q8_0", 0.02),
    ],
)
def test_every_type_that_can_be_written_here_comes_back(tmp_path: Path, name: str, tolerance: float) -> None:
    expected = write_gguf(tmp_path / "m.gguf", quantisation=gguf.GGMLQuantizationType[name])

    convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "float32")

    written = load_file(tmp_path / "out" / "model.safetensors")
    for tensor, weight in expected.items():
        np.testing.assert_allclose(written[tensor].numpy(), weight, atol=tolerance, err_msg=tensor)


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
        ({"divisors": np.arange(1, HEAD_DIM // 2 + 1)}, r"rope_freqs\.weight is not the scaling of Llama 3"),
        ({"architecture": "qwen3", "extra_tensor": "blk.0.attn_q.bias"}, r"blk\.0\.attn_q\.bias"),
        ({"extra_tensor": "blk.0.attn_q.scale"}, r"blk\.0\.attn_q\.scale"),
        ({"extra_tensor": "blk.0.ffn_gate_exps.weight"}, r"ffn_gate_exps"),
        ({"also": lambda writer: writer.add_sliding_window(64)}, r"llama\.attention\.sliding_window 64"),
        ({"also": lambda writer: writer.add_value_length(16)}, r"llama\.attention\.value_length 16"),
        (
            {"also": lambda writer: writer.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)},
            r"llama\.rope\.scaling\.type 'longrope'",
        ),
        (
            {"also": lambda writer: scaled(writer, "LINEAR", attn_factors=2.0)},
            r"llama\.rope\.scaling\.attn_factor",
        ),
        ({"extra_tensor": "blk.0.attn_q.bias"}, r"blk\.0\.attn_q\.bias"),
        ({"without": "blk.1.ffn_up.weight"}, r"model\.layers\.1\.mlp\.up_proj\.weight"),
        (
            {"also": lambda writer: writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)},
            r"lacks the field llama\.rope\.scaling\.factor",
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


def scaled(writer: gguf.GGUFWriter, kind: str, **more: float) -> None:
    writer.add_rope_scaling_type(gguf.RopeScalingType[kind])
    writer.add_rope_scaling_factor(4.0)
    if kind == "YARN":
        writer.add_rope_scaling_orig_ctx_len(32)
    for name, value in more.items():
        getattr(writer, f"add_rope_scaling_{name}")(value)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"also": lambda writer: scaled(writer, "LINEAR")}, LinearScaling(4.0)),
        (
            {"architecture": "qwen2", "also": lambda writer: scaled(writer, "YARN")},
            YarnScaling(4.0, 32, 32.0, 1.0, 0.1 * math.log(4) + 1, truncate=True),
        ),
    ],
)
def test_rotary_scaling_is_kept(tmp_path: Path, options: dict[str, Any], expected: object) -> None:
    write_gguf(tmp_path / "m.gguf", **options)

    convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "float32")

    config = read_config(tmp_path / "out")
    assert (config.rope_scaling, config.rope_theta) == (expected, 50_000.0)


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama_3s_scaling_is_told_from_its_divisors(tmp_path: Path, factor: float) -> None:
    """The divisors are what `transformers` itself makes of the scaling."""
    scaling = {
        "rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192, "rope_theta": 50_000.0,
    }  # fmt: skip
    shape = {"hidden_size": HIDDEN, "num_attention_heads": HEADS, "max_position_embeddings": 131072}
    plain = 50_000.0 ** -(np.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](LlamaConfig(**shape, rope_parameters=scaling), None)
    write_gguf(tmp_path / "m.gguf", divisors=plain / frequencies.numpy())

    convert_gguf(tmp_path / "m.gguf", tmp_path / "out", "float32")

    assert read_config(tmp_path / "out").rope_scaling == Llama3Scaling(factor, 1.0, 4.0, 8192)


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
