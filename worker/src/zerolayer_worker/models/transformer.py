"""The Llama-family forward pass, once for a chunk of one prompt and once for a batch of next tokens."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import embedding, rms_norm, silu

from zerolayer_worker.common.transfer import on_device
from zerolayer_worker.models.attention import attend_chunk, attend_rows, chunk_pages, row_pages
from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.head import LmHead
from zerolayer_worker.models.kv_cache import KvCache
from zerolayer_worker.models.layers import LayerWeights, Storage, rounded, take_layer
from zerolayer_worker.models.native.library import Kernels
from zerolayer_worker.models.native.model import NativeModel, NativeProduct
from zerolayer_worker.models.quantised import blocked
from zerolayer_worker.models.rope import apply_rope, rope_tables
from zerolayer_worker.models.step_rows import LENGTHS, TOKENS, step_rows

_Attend = Callable[[Tensor, Tensor, Tensor, int], Tensor]


class Transformer:
    """Weights laid out for running; consumes the tensors that `load_tensors` returns."""

    def __init__(
        self,
        config: ModelConfig,
        tensors: dict[str, Tensor],
        *,
        length: int,
        storage: Storage | None = None,
        kernels: Kernels | None = None,
    ) -> None:
        """Empties `tensors` while packing them.

        Args:
            config: the model's shape.
            tensors: all on one device and of one dtype.
            length: the longest context in tokens.
            storage: how weights are kept; as they are by default.
            kernels: the native library, which `storage.native` needs.
        """
        storage = storage or Storage()
        self.config = config
        self._embedding = tensors.pop("model.embed_tokens.weight")
        self._norm = tensors.pop("model.norm.weight")
        self._layers = tuple(take_layer(config, tensors, index, storage) for index in range(config.layers))
        self.head = _head(tensors.pop("lm_head.weight", self._embedding), storage, kernels)
        self._cos, self._sin = rope_tables(config, length, self._embedding.device)
        self._native: NativeModel | None = None
        if storage.native and kernels is not None:
            layers = [layer.native() for layer in self._layers]
            self._native = NativeModel(kernels, config, layers, self._norm, (self._cos, self._sin))
        self._native_prompts = self._native if storage.prompts else None
        self._paged = storage.paged
        self._scale = config.head_dim**-0.5

    @property
    def length(self) -> int:
        """The longest context in tokens."""
        return self._cos.shape[0]

    @property
    def step_kernels(self) -> str:
        """What decode steps run through; part of the fingerprint."""
        if self._native is not None:
            return self._native.kernels
        return "triton" if self.paged else "torch"

    @property
    def paged(self) -> bool:
        """Whether decode steps are `step`s."""
        return self._paged

    @property
    def prompt_kernels(self) -> str:
        """What prompts run through; part of the fingerprint."""
        return "torch" if self._native_prompts is None else self._native_prompts.kernels

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
        x = embedding(on_device(token_ids, torch.int64, self.device), self._embedding)
        if self._native_prompts is not None:
            return self._native_prompts.prefill(x, start, table, cache).to(self.dtype)
        cos, sin = self._cos[start:end, None], self._sin[start:end, None]
        where = chunk_pages(start, len(token_ids), table, cache)

        def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
            return attend_chunk(q, k, v, cache=cache, layer=layer, where=where)

        return self._normed(self._through(x, cos, sin, attend)[-1:])

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
        if self.paged:
            rows = step_rows(token_ids, positions, tables, page=cache.page, device=self.device)
            return self.step(rows, cache)
        live = len(tables)
        if self._native is not None:
            x = embedding(torch.tensor(token_ids[:live], device=self.device), self._embedding)
            # In fp32 from there; the head multiplies in the type of the weights, as behind a prompt.
            return self._native.decode(x, positions[:live], tables, cache).to(self.dtype)
        x = embedding(torch.tensor(token_ids, device=self.device), self._embedding)
        places = torch.tensor(positions, device=self.device)
        cos, sin = self._cos[places, None], self._sin[places, None]
        where = row_pages(positions[:live], tables, cache)

        def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
            return attend_rows(q, k[:live], v[:live], cache=cache, layer=layer, where=where)

        return self._normed(self._through(x, cos, sin, attend))

    def step(self, rows: Tensor, cache: KvCache) -> Tensor:
        """The same through the paged kernels; only where the model is `paged`.

        Nothing of it needs a number on the host, so that it may be captured and replayed.

        Args:
            rows: int32 `[2 + pages, rows]`, contiguous; see `step_rows`.
            cache: where keys and values are.

        Returns:
            Final hidden states `[rows, hidden_size]`.
        """
        # Triton comes with torch for CUDA alone.
        from zerolayer_worker.models.paged_attention import attend_paged  # noqa: PLC0415 - see above

        places = (rows[LENGTHS] - 1).clamp(min=0)
        cos, sin = (table.index_select(0, places)[:, None] for table in (self._cos, self._sin))

        def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
            return attend_paged(q, k, v, cache=cache, layer=layer, step=rows)

        return self._normed(self._through(embedding(rows[TOKENS], self._embedding), cos, sin, attend))

    def _through(self, x: Tensor, cos: Tensor, sin: Tensor, attend: _Attend) -> Tensor:
        """All layers; `attend` takes a layer's queries, keys, values and number."""
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, x, cos, sin)
            x = self._finish(layer, x, attend(q, k, v, index))
        return x

    def _normed(self, x: Tensor) -> Tensor:
        return rms_norm(x, (self.config.hidden_size,), self._norm, self.config.norm_eps)

    def _project(
        self, layer: LayerWeights, x: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated and scaled queries, rotated keys, and values: `[rows, (kv_)heads, head_dim]`."""
        c = self.config
        normed = rms_norm(x, (c.hidden_size,), layer.attention_norm, c.norm_eps)
        qkv = layer.qkv.product(normed).view(-1, c.heads + 2 * c.kv_heads, c.head_dim)
        rotated = qkv[:, : c.heads + c.kv_heads]
        if layer.query_norm is not None and layer.key_norm is not None:
            q = rms_norm(rotated[:, : c.heads], (c.head_dim,), layer.query_norm, c.norm_eps)
            k = rms_norm(rotated[:, c.heads :], (c.head_dim,), layer.key_norm, c.norm_eps)
            rotated = torch.cat((q, k), dim=1)
        rotated = apply_rope(rotated.float(), cos, sin) if layer.rotated else rotated.float()
        k = rotated[:, c.heads :].to(x.dtype)
        return rotated[:, : c.heads] * self._scale, k, qkv[:, c.heads + c.kv_heads :]

    def _finish(self, layer: LayerWeights, x: Tensor, attended: Tensor) -> Tensor:
        """Output projection and feed-forward, each with its residual."""
        x = x + layer.output.product(attended.to(x.dtype))
        normed = rms_norm(x, (self.config.hidden_size,), layer.mlp_norm, self.config.norm_eps)
        gate, up = layer.gate_up.product(normed).chunk(2, dim=-1)
        return x + layer.down.product(silu(gate) * up)


def _head(weight: Tensor, storage: Storage, kernels: Kernels | None) -> LmHead:
    if storage.head is None or kernels is None:
        return LmHead(rounded(weight, storage.head))
    form = storage.head
    return LmHead(weight, product=lambda part: NativeProduct(kernels, blocked(part, form)))
