"""Takes a checkpoint's tensors apart into layers, laid out for the products that will use them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.linear import Linear
from zerolayer_worker.models.native.model import NativeLayer
from zerolayer_worker.models.quantised import BlockedMatrix, Format, blocked, expand


@dataclass(frozen=True, slots=True)
class Storage:
    """How weights are kept.

    Attributes:
        layers: format of the layers' matrices; None keeps them as they are.
        head: the same of the LM head.
        native: whether decode steps go through the native library, which needs a layout of its own.
        prompts: whether prompts do so too, which takes `native`; otherwise torch has weights of its own.
        paged: whether decode steps attend through Triton's kernels.
    """

    layers: Format | None = None
    head: Format | None = None
    native: bool = False
    prompts: bool = False
    paged: bool = False


@dataclass(frozen=True, slots=True)
class Projection:
    """One matrix: `linear` for passes through torch, `matrix` for native ones."""

    linear: Linear | None
    matrix: BlockedMatrix | None
    bias: Tensor | None

    def product(self, rows: Tensor) -> Tensor:
        """`rows` `[n, in]` → `[n, out]`, through torch.

        Raises:
            ValueError: it was not stored for it.
        """
        if self.linear is None:
            raise ValueError("the layer's weights were stored for native passes only")
        return self.linear(rows)


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One decoder layer."""

    attention_norm: Tensor
    qkv: Projection
    query_norm: Tensor | None
    key_norm: Tensor | None
    rotated: bool
    output: Projection
    mlp_norm: Tensor
    gate_up: Projection
    down: Projection

    def native(self) -> NativeLayer:
        """The same for `NativeModel`.

        Raises:
            ValueError: it was not stored for it.
        """
        matrices = [each.matrix for each in (self.qkv, self.output, self.gate_up, self.down)]
        qkv, output, gate_up, down = (_present(matrix) for matrix in matrices)
        return NativeLayer(
            attention_norm=self.attention_norm,
            query_norm=self.query_norm,
            key_norm=self.key_norm,
            mlp_norm=self.mlp_norm,
            qkv=qkv,
            qkv_bias=self.qkv.bias,
            output=output,
            output_bias=self.output.bias,
            gate_up=gate_up,
            down=down,
            rotated=self.rotated,
        )


def take_layer(config: ModelConfig, tensors: dict[str, Tensor], index: int, storage: Storage) -> LayerWeights:
    """Removes layer `index` from `tensors`."""
    prefix = f"model.layers.{index}."

    def take(name: str) -> Tensor:
        return tensors.pop(prefix + name)

    def fused(*names: str, bias: bool = False) -> Projection:
        weight = torch.cat([take(f"{name}.weight") for name in names])
        added = torch.cat([take(f"{name}.bias") for name in names]) if bias else None
        return _projection(weight, added, storage)

    return LayerWeights(
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


def rounded(weight: Tensor, form: Format | None) -> Tensor:
    """What a product with `weight` `[rows, columns]` in this format multiplies by, in the weight's dtype."""
    return weight if form is None else expand(blocked(weight, form)).to(weight.dtype)


def _projection(weight: Tensor, bias: Tensor | None, storage: Storage) -> Projection:
    plain = Format.BFLOAT16 if weight.dtype == torch.bfloat16 else Format.FLOAT32
    matrix = blocked(weight, plain if storage.layers is None else storage.layers) if storage.native else None
    linear = None if storage.prompts else Linear(rounded(weight, storage.layers), bias)
    return Projection(linear, matrix, bias)


def _present(matrix: BlockedMatrix | None) -> BlockedMatrix:
    if matrix is None:
        raise ValueError("the layer's weights were not stored for native passes")
    return matrix
