"""The Llama-family forward pass, once for a chunk of one prompt and once for a batch of next tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding, rms_norm, silu

from zerolayer_worker.models.attention import attend_chunk, attend_rows, chunk_pages, row_pages
from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.head import LmHead
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.linear import Linear
from zerolayer_worker.models.rope import apply_rope, rope_tables


@dataclass(frozen=True, slots=True)
class _Layer:
    attention_norm: Tensor
    qkv: Linear
    query_norm: Tensor | None
    key_norm: Tensor | None
    rotated: bool
    output: Linear
    mlp_norm: Tensor
    gate_up: Linear
    down: Linear


class Transformer:
    """Weights laid out for running; consumes the tensors that `load_tensors` returns."""

    def __init__(self, config: ModelConfig, tensors: dict[str, Tensor], *, length: int) -> None:
        """Empties `tensors` while packing them; `length` is the longest context in tokens."""
        self.config = config
        self._embedding = tensors.pop("model.embed_tokens.weight")
        self._norm = tensors.pop("model.norm.weight")
        self._layers = tuple(_take_layer(config, tensors, index) for index in range(config.layers))
        self.head = LmHead(tensors.pop("lm_head.weight", self._embedding))
        self._cos, self._sin = rope_tables(config, length, self._embedding.device)
        self._scale = config.head_dim**-0.5

    @property
    def length(self) -> int:
        """The longest context in tokens."""
        return self._cos.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        """Type of weights and activations."""
        return self._embedding.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self._embedding.device

    @property
    def embedding(self) -> Tensor:
        """Of every token, `[vocab, hidden_size]`."""
        return self._embedding

    def prefill(self, token_ids: Sequence[int], start: int, table: Sequence[int], cache: KvCache) -> Tensor:
        """Runs one chunk of one prompt and stores its keys and values.

        Args:
            token_ids: the chunk's tokens, at positions `start`, `start + 1`, …
            start: the chunk's first position; what comes before is in the sequence's pages already.
            table: the sequence's pages in the order of its tokens, up to the chunk's end or further.
            cache: where keys and values are.

        Returns:
            The last token's final hidden state, `[1, hidden_size]`.
        """
        end = start + len(token_ids)
        x = embedding(torch.tensor(token_ids, device=self.device), self._embedding)
        cos, sin = self._cos[start:end, None], self._sin[start:end, None]
        where = chunk_pages(start, len(token_ids), table, cache)
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, x, cos, sin)
            x = self._finish(layer, x, attend_chunk(q, k, v, cache=cache, layer=index, where=where))
        return rms_norm(x[-1:], (self.config.hidden_size,), self._norm, self.config.norm_eps)

    def decode(
        self,
        token_ids: Sequence[int],
        positions: Sequence[int],
        tables: Sequence[Sequence[int]],
        cache: KvCache,
    ) -> Tensor:
        """Runs one token per row; rows may be of one sequence, at different positions.

        Args:
            token_ids: one per row; rows beyond `len(tables)` only fill the products up and are ignored.
            positions: each token's position in its sequence.
            tables: the pages of the first `len(tables)` rows' sequences, up to the position or further.
            cache: where keys and values are.

        Returns:
            Final hidden states `[rows, hidden_size]`.
        """
        live = len(tables)
        x = embedding(torch.tensor(token_ids, device=self.device), self._embedding)
        places = torch.tensor(positions, device=self.device)
        cos, sin = self._cos[places, None], self._sin[places, None]
        where = row_pages(positions[:live], tables, cache)
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, x, cos, sin)
            x = self._finish(
                layer, x, attend_rows(q, k[:live], v[:live], cache=cache, layer=index, where=where)
            )
        return rms_norm(x, (self.config.hidden_size,), self._norm, self.config.norm_eps)

    def _project(self, layer: _Layer, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated and scaled queries, rotated keys, and values: `[rows, (kv_)heads, head_dim]`."""
        c = self.config
        normed = rms_norm(x, (c.hidden_size,), layer.attention_norm, c.norm_eps)
        qkv = layer.qkv(normed).view(-1, c.heads + 2 * c.kv_heads, c.head_dim)
        rotated = qkv[:, : c.heads + c.kv_heads]
        if layer.query_norm is not None and layer.key_norm is not None:
            q = rms_norm(rotated[:, : c.heads], (c.head_dim,), layer.query_norm, c.norm_eps)
            k = rms_norm(rotated[:, c.heads :], (c.head_dim,), layer.key_norm, c.norm_eps)
            rotated = torch.cat((q, k), dim=1)
        rotated = apply_rope(rotated.float(), cos, sin) if layer.rotated else rotated.float()
        k = rotated[:, c.heads :].to(x.dtype)
        return rotated[:, : c.heads] * self._scale, k, qkv[:, c.heads + c.kv_heads :]

    def _finish(self, layer: _Layer, x: Tensor, attended: Tensor) -> Tensor:
        """Output projection and feed-forward, each with its residual."""
        x = x + layer.output(attended.to(x.dtype))
        normed = rms_norm(x, (self.config.hidden_size,), layer.mlp_norm, self.config.norm_eps)
        gate, up = layer.gate_up(normed).chunk(2, dim=-1)
        return x + layer.down(silu(gate) * up)


def _take_layer(config: ModelConfig, tensors: dict[str, Tensor], index: int) -> _Layer:
    prefix = f"model.layers.{index}."

    def take(name: str) -> Tensor:
        return tensors.pop(prefix + name)

    def fused(*names: str, bias: bool = False) -> Linear:
        weight = torch.cat([take(f"{name}.weight") for name in names])
        return Linear(weight, torch.cat([take(f"{name}.bias") for name in names]) if bias else None)

    return _Layer(
        attention_norm=take("input_layernorm.weight"),
        qkv=fused("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", bias=config.qkv_bias),
        query_norm=take("self_attn.q_norm.weight") if config.qk_norm else None,
        key_norm=take("self_attn.k_norm.weight") if config.qk_norm else None,
        rotated=index not in config.unrotated,
        output=fused("self_attn.o_proj", bias=config.output_bias),
        mlp_norm=take("post_attention_layernorm.weight"),
        gate_up=fused("mlp.gate_proj", "mlp.up_proj"),
        down=fused("mlp.down_proj"),
    )
