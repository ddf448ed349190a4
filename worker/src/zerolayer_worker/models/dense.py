"""The forward pass over whole sequences at once, differentiable: for training and for comparing texts.

Serving has its own (`transformer`): it packs weights and writes into a cache, which no gradient passes.
"""

from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu

from zerolayer_worker.models.config import ModelConfig, read_config
from zerolayer_worker.models.packing import Pack
from zerolayer_worker.models.rope import apply_rope, rope_tables
from zerolayer_worker.models.weights import load_tensors


class DenseModel:
    """A model's tensors by their Hugging Face names; single ones may be replaced between two calls."""

    def __init__(self, config: ModelConfig, tensors: dict[str, Tensor]) -> None:
        """Keeps `tensors` as they are."""
        self.config = config
        self.tensors = tensors

    def hidden(self, pack: Pack) -> Tensor:
        """Final hidden states of all of a pack's tokens, `[tokens, hidden_size]`."""
        x = embedding(pack.ids, self.tensors["model.embed_tokens.weight"])
        tables = rope_tables(self.config, pack.grid.shape[1], x.device)
        cos, sin = (table[pack.positions, None] for table in tables)
        plain = torch.ones_like(cos), torch.zeros_like(sin)
        for index in range(self.config.layers):
            turned = (cos, sin) if index not in self.config.unrotated else plain
            x = self._layer(f"model.layers.{index}.", x, pack, *turned)
        return self._norm("model.norm", x)

    def logprobs(self, hidden: Tensor) -> Tensor:
        """Log-probabilities of the next token, fp32 `[rows, vocab_size]`."""
        head = "model.embed_tokens" if self.config.tied_head else "lm_head"
        return linear(hidden, self.tensors[f"{head}.weight"]).float().log_softmax(dim=-1)

    def project(self, name: str, x: Tensor) -> Tensor:
        """The product with a layer's matrix, and its bias where it has one."""
        return linear(x, self.tensors[f"{name}.weight"], self.tensors.get(f"{name}.bias"))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        gain = self.tensors[f"{name}.weight"].to(x.dtype)
        return rms_norm(x, gain.shape, gain, self.config.norm_eps)

    def _layer(self, prefix: str, x: Tensor, pack: Pack, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self._attention(prefix, self._norm(prefix + "input_layernorm", x), pack, cos, sin)
        normed = self._norm(prefix + "post_attention_layernorm", x)
        gate = self.project(prefix + "mlp.gate_proj", normed)
        return x + self.project(
            prefix + "mlp.down_proj", silu(gate) * self.project(prefix + "mlp.up_proj", normed)
        )

    def _attention(self, prefix: str, x: Tensor, pack: Pack, cos: Tensor, sin: Tensor) -> Tensor:
        """Causal attention, each sequence over its own tokens: they meet in the grid, and only there."""
        c, name = self.config, prefix + "self_attn."
        q = self.project(name + "q_proj", x).view(-1, c.heads, c.head_dim)
        k = self.project(name + "k_proj", x).view(-1, c.kv_heads, c.head_dim)
        v = self.project(name + "v_proj", x).view(-1, c.kv_heads, c.head_dim)
        if c.qk_norm:
            q, k = self._norm(name + "q_norm", q), self._norm(name + "k_norm", k)
        q, k = (apply_rope(each.float(), cos, sin).to(x.dtype) for each in (q, k))

        def gathered(rows: Tensor) -> Tensor:
            # Not rows[grid], whose gradient adds up in an order that is not fixed.
            picked = rows.index_select(0, pack.grid.flatten())
            return picked.view(*pack.grid.shape, *rows.shape[1:]).transpose(1, 2)

        seen = scaled_dot_product_attention(
            gathered(q), gathered(k), gathered(v), is_causal=True, enable_gqa=True
        )
        flat = seen.transpose(1, 2).reshape(-1, c.heads * c.head_dim)
        return self.project(name + "o_proj", flat.index_select(0, pack.places))


def load_dense(folder: Path, dtype: torch.dtype = torch.float32) -> DenseModel:
    """Loads a model folder on the CPU.

    Raises:
        ModelFolderError: as `read_config` and `load_tensors`.
    """
    config = read_config(folder)
    return DenseModel(config, load_tensors(folder, config, dtype, torch.device("cpu")))
