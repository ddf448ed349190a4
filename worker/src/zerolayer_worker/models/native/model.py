"""A model's passes through the native library."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.kv_cache import KvCache, filled_tables, pages_for
from zerolayer_worker.models.native.library import (
    Kernels,
    Layer,
    Model,
    Pages,
    Part,
    Rows,
    address,
    matrix_of,
)
from zerolayer_worker.models.quantised import GROUP, BlockedMatrix

_CACHE_FORMATS = {torch.float32: 0, torch.bfloat16: 1}
# What the kernels' vectors and buffers are made for.
_HEAD_MULTIPLE, _WIDEST_HEAD, _PAGE_MULTIPLE = 32, 256, 4
# Tokens of a prompt that run through a layer before the next one; their states should fit into the caches.
_TOKENS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class NativeLayer:
    """One layer's weights. Norms are `[hidden_size]` or `[head_dim]`, biases `[rows]` of their matrix."""

    attention_norm: Tensor
    query_norm: Tensor | None
    key_norm: Tensor | None
    mlp_norm: Tensor
    qkv: BlockedMatrix
    qkv_bias: Tensor | None
    output: BlockedMatrix
    output_bias: Tensor | None
    gate_up: BlockedMatrix
    down: BlockedMatrix
    rotated: bool


def unsupported(config: ModelConfig) -> str | None:
    """What of a model's shape the kernels can't do; None if they can."""
    if config.head_dim % _HEAD_MULTIPLE or config.head_dim > _WIDEST_HEAD:
        return f"head_dim {config.head_dim} is no multiple of {_HEAD_MULTIPLE} up to {_WIDEST_HEAD}"
    for name in ("hidden_size", "intermediate_size"):
        if getattr(config, name) % GROUP:
            return f"{name} {getattr(config, name)} is no multiple of {GROUP}"
    return None


class NativeModel:
    """Runs decode steps and prompts of one model. A row's bits depend on its own sequence only."""

    def __init__(
        self,
        kernels: Kernels,
        config: ModelConfig,
        layers: Sequence[NativeLayer],
        norm: Tensor,
        tables: tuple[Tensor, Tensor],
    ) -> None:
        """Takes the final norm `[hidden_size]` and the rotary tables, fp32 `[positions, head_dim]` each."""
        self._kernels = kernels
        self._kept: list[object] = [*layers]
        structures = (Layer * config.layers)(*(self._layer(layer) for layer in layers))
        self._model = Model(
            layers=config.layers,
            hidden=config.hidden_size,
            heads=config.heads,
            kv_heads=config.kv_heads,
            head_dim=config.head_dim,
            inner=config.intermediate_size,
            eps=config.norm_eps,
            scale=config.head_dim**-0.5,
            norm=self._keep(norm),
            cosines=self._keep(tables[0]),
            sines=self._keep(tables[1]),
            layer=ctypes.addressof(structures),
        )
        self._kept.append(structures)

    @property
    def kernels(self) -> str:
        """Names the library: its sources, flags and kind of CPU."""
        return self._kernels.name

    def decode(
        self, x: Tensor, positions: Sequence[int], tables: Sequence[Sequence[int]], cache: KvCache
    ) -> Tensor:
        """One token per row.

        Args:
            x: the tokens' embeddings, `[rows, hidden_size]`.
            positions: each token's position.
            tables: the pages of each row's sequence, up to the position or further.
            cache: where keys and values are; fp32 or bf16.

        Returns:
            Final hidden states, fp32 `[rows, hidden_size]`.
        """
        states = x.float().contiguous()
        if states.data_ptr() == x.data_ptr():
            states = states.clone()
        filled = filled_tables(tables, [position + 1 for position in positions], cache.page)
        pages, places = torch.tensor(filled, dtype=torch.int32), torch.tensor(positions, dtype=torch.int32)
        rows = Rows(
            count=len(tables),
            table_width=pages.shape[1],
            positions=places.data_ptr(),
            tables=pages.data_ptr(),
        )
        self._kernels.decode(self._model, _pages(cache), rows, states)
        return states

    def prefill(self, x: Tensor, start: int, table: Sequence[int], cache: KvCache) -> Tensor:
        """Tokens of one prompt in a row.

        What becomes of a token depends on those before it alone, not on where the prompt is cut.

        Args:
            x: the tokens' embeddings, `[tokens, hidden_size]`.
            start: the first token's position; what comes before is in the sequence's pages already.
            table: the sequence's pages, up to the last token or further.
            cache: where keys and values are; fp32 or bf16.

        Returns:
            The last token's final hidden state, fp32 `[1, hidden_size]`.
        """
        pages = torch.tensor(table[: pages_for(start + x.shape[0], cache.page)], dtype=torch.int32)
        out = torch.empty(1, x.shape[1])
        for first in range(0, x.shape[0], _TOKENS_AT_ONCE):
            rows = x[first : first + _TOKENS_AT_ONCE].float().contiguous()
            part = Part(start=start + first, count=rows.shape[0], table=pages.data_ptr())
            self._kernels.prefill(self._model, _pages(cache), part, rows, out)
        return out

    def _layer(self, layer: NativeLayer) -> Layer:
        return Layer(
            attention_norm=self._keep(layer.attention_norm),
            query_norm=self._keep(layer.query_norm),
            key_norm=self._keep(layer.key_norm),
            mlp_norm=self._keep(layer.mlp_norm),
            qkv=matrix_of(layer.qkv, self._float(layer.qkv_bias)),
            output=matrix_of(layer.output, self._float(layer.output_bias)),
            gate_up=matrix_of(layer.gate_up),
            down=matrix_of(layer.down),
            rotated=layer.rotated,
        )

    def _keep(self, tensor: Tensor | None) -> int | None:
        return address(self._float(tensor))

    def _float(self, tensor: Tensor | None) -> Tensor | None:
        """fp32 in one piece, alive as long as this object."""
        if tensor is None:
            return None
        plain = tensor.float().contiguous()
        self._kept.append(plain)
        return plain


def _pages(cache: KvCache) -> Pages:
    if cache.page % _PAGE_MULTIPLE:
        raise ValueError(f"pages of {cache.page} tokens are no multiple of {_PAGE_MULTIPLE}")
    return Pages(
        keys=cache.keys.data_ptr(),
        values=cache.values.data_ptr(),
        pages=cache.pages,
        page_size=cache.page,
        format=_CACHE_FORMATS[cache.keys.dtype],
    )


class NativeProduct:
    """`x @ weight.T` of a few rows through the native library."""

    def __init__(self, kernels: Kernels, weight: BlockedMatrix) -> None:
        """Keeps `weight`."""
        self._kernels = kernels
        self._weight = weight
        self._matrix = matrix_of(weight)

    def __call__(self, rows: Tensor) -> Tensor:
        """`rows` `[n, columns]` → fp32 `[n, rows of the weight]`."""
        out = torch.empty(rows.shape[0], self._weight.rows)
        self._kernels.multiply(self._matrix, rows.float().contiguous(), out)
        return out
