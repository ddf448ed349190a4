"""The Llama-family forward pass, once for a chunk of one prompt and once for a batch of next tokens.

Attention is explicit (product, softmax, product) in fp32 and one sequence at a time over exactly its own
keys and values: nothing a neighbour does, nor how long it is, can change a bit of a sequence's result.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding, rms_norm, silu

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
    def dtype(self) -> torch.dtype:
        """Type of weights and activations."""
        return self._embedding.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self._embedding.device

    def prefill(self, token_ids: Sequence[int], slot: int, start: int, cache: KvCache) -> Tensor:
        """Runs one chunk of one prompt and stores its keys and values.

        Args:
            token_ids: the chunk's tokens, at positions `start`, `start + 1`, …
            slot: the sequence's slot; positions before `start` are already in it.
            start: the chunk's first position.
            cache: where keys and values are.

        Returns:
            The last token's final hidden state, `[1, hidden_size]`.
        """
        count, end = len(token_ids), start + len(token_ids)
        x = embedding(torch.tensor(token_ids, device=self.device), self._embedding)
        cos, sin = self._cos[start:end, None], self._sin[start:end, None]
        mask = torch.full((count, count), float("-inf"), device=self.device).triu_(1)
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, x, cos, sin)
            keys, values = cache.keys[index, slot, :, :end], cache.values[index, slot, :, :end]
            keys[:, start:] = k.transpose(0, 1)
            values[:, start:] = v.transpose(0, 1)
            x = self._finish(layer, x, self._attend_chunk(q, keys, values, mask))
        return rms_norm(x[-1:], (self.config.hidden_size,), self._norm, self.config.norm_eps)

    def decode(
        self, token_ids: Sequence[int], positions: Sequence[int], slots: Sequence[int], cache: KvCache
    ) -> Tensor:
        """Runs one token of each of several sequences.

        Args:
            token_ids: one per row; rows beyond `len(slots)` only fill the products up and are ignored.
            positions: each token's position in its sequence.
            slots: the slots of the first `len(slots)` rows.
            cache: where keys and values are.

        Returns:
            Final hidden states `[rows, hidden_size]`.
        """
        live = len(slots)
        x = embedding(torch.tensor(token_ids, device=self.device), self._embedding)
        places = torch.tensor(positions, device=self.device)
        cos, sin = self._cos[places, None], self._sin[places, None]
        places, where = places[:live], torch.tensor(slots, device=self.device)
        spans = [(slot, position + 1) for slot, position in zip(slots, positions, strict=False)]
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, x, cos, sin)
            keys, values = cache.keys[index], cache.values[index]
            keys[where, :, places] = k[:live]
            values[where, :, places] = v[:live]
            x = self._finish(layer, x, self._attend_rows(q, keys, values, spans))
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
        rotated = apply_rope(rotated.float(), cos, sin)
        k = rotated[:, c.heads :].to(x.dtype)
        return rotated[:, : c.heads] * self._scale, k, qkv[:, c.heads + c.kv_heads :]

    def _attend_chunk(self, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Causal attention of a chunk: `q` `[n, heads, dim]`, `keys` `[kv_heads, end, dim]`."""
        c, count = self.config, q.shape[0]
        groups = c.heads // c.kv_heads
        grouped = q.view(count, c.kv_heads, groups, c.head_dim).permute(1, 2, 0, 3)
        scores = torch.bmm(
            grouped.reshape(c.kv_heads, groups * count, c.head_dim), keys.float().transpose(1, 2)
        )
        scores.view(c.kv_heads, groups, count, -1)[..., -count:] += mask
        mixed = torch.bmm(torch.softmax(scores, dim=-1), values.float())
        mixed = mixed.view(c.kv_heads, groups, count, c.head_dim).permute(2, 0, 1, 3)
        return mixed.reshape(count, c.heads * c.head_dim)

    def _attend_rows(
        self, q: Tensor, keys: Tensor, values: Tensor, spans: Sequence[tuple[int, int]]
    ) -> Tensor:
        """Attention of one new token per `(slot, length)`; `q` `[rows, heads, dim]`."""
        c = self.config
        out = q.new_zeros(q.shape[0], c.kv_heads, c.heads // c.kv_heads, c.head_dim)
        grouped = q.view(out.shape)
        for row, (slot, length) in enumerate(spans):
            scores = torch.bmm(grouped[row], keys[slot, :, :length].float().transpose(1, 2))
            torch.bmm(torch.softmax(scores, dim=-1), values[slot, :, :length].float(), out=out[row])
        return out.view(q.shape[0], c.heads * c.head_dim)

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
        output=fused("self_attn.o_proj", bias=config.output_bias),
        mlp_norm=take("post_attention_layernorm.weight"),
        gate_up=fused("mlp.gate_proj", "mlp.up_proj"),
        down=fused("mlp.down_proj"),
    )
