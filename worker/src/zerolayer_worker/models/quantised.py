"""Weight matrices laid out for the native decode step, in full precision or with fewer bits.

The quantised formats hold the numbers of GGUF's `Q8_0` and `Q4_1`, so a model that was made from such a file
has exactly the file's weights: weight = number * scale for int8 (-127 … 127), number * scale + offset for
int4 (0 … 15), with scale and offset in fp16 for every 32 columns of a row.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import torch
from torch import Tensor

GROUP: Final = 32
"""Columns that share a scale."""

BLOCK: Final = 4
"""Rows that lie side by side."""

_INT8_MAX, _INT4_MAX = 127, 15
_TINY = 1e-30


class Format(IntEnum):
    """How weights are stored; the values are the native library's."""

    FLOAT32 = 0
    BFLOAT16 = 1
    INT8 = 2
    INT4 = 3


@dataclass(frozen=True, slots=True)
class BlockedMatrix:
    """A `[rows, columns]` matrix as `[rows / 4, columns / 32, 4, 32]`, rows filled up to a multiple of four.

    A product thus reads memory from front to back, in one stream.

    Attributes:
        data: fp32, bf16 or int8 of that shape; int4 is uint8 `[…, 4, 16]`, whose low halves are a group's
            first 16 columns and whose high halves are the other 16.
        scales: fp16 `[rows / 4, columns / 32, 4]`; None in full precision.
        offsets: the same, int4 only.
        rows: of the matrix itself.
        columns: a multiple of 32.
        format: how `data` is to be read.
    """

    data: Tensor
    scales: Tensor | None
    offsets: Tensor | None
    rows: int
    columns: int
    format: Format


def blocked(weight: Tensor, form: Format) -> BlockedMatrix:
    """Lays `weight` `[rows, columns]` out; quantises it where the format says so.

    Raises:
        ValueError: the columns are not whole groups, or a value is not finite.
    """
    rows, columns = weight.shape
    if columns % GROUP:
        raise ValueError(f"{columns} columns are not whole groups of {GROUP}")
    filled = torch.nn.functional.pad(weight.detach(), (0, 0, 0, -rows % BLOCK))
    groups = filled.view(-1, BLOCK, columns // GROUP, GROUP).transpose(1, 2)
    if form is Format.FLOAT32 or form is Format.BFLOAT16:
        dtype = torch.float32 if form is Format.FLOAT32 else torch.bfloat16
        return BlockedMatrix(groups.to(dtype).contiguous(), None, None, rows, columns, form)
    groups = groups.float()
    if not bool(groups.isfinite().all()):
        raise ValueError("a weight is not finite; it can't be quantised")
    data, scales, offsets = _int8(groups) if form is Format.INT8 else _int4(groups)
    return BlockedMatrix(data, scales, offsets, rows, columns, form)


def expand(matrix: BlockedMatrix) -> Tensor:
    """The weights that a product with `matrix` uses, fp32 `[rows, columns]`."""
    numbers = matrix.data
    if matrix.format is Format.INT4:
        numbers = torch.cat((numbers & _INT4_MAX, numbers >> 4), dim=-1)
    weights = numbers.float()
    if matrix.scales is not None:
        weights *= matrix.scales.float()[..., None]
    if matrix.offsets is not None:
        weights += matrix.offsets.float()[..., None]
    return weights.transpose(1, 2).reshape(-1, matrix.columns)[: matrix.rows]


def _int8(groups: Tensor) -> tuple[Tensor, Tensor, None]:
    scales = (groups.abs().amax(-1) / _INT8_MAX).half()
    numbers = groups / scales.float().clamp(min=_TINY)[..., None]
    data = numbers.round_().clamp_(-_INT8_MAX, _INT8_MAX).to(torch.int8)
    return data.contiguous(), scales.contiguous(), None


def _int4(groups: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    low = groups.amin(-1)
    scales, offsets = ((groups.amax(-1) - low) / _INT4_MAX).half(), low.half()
    numbers = (groups - offsets.float()[..., None]) / scales.float().clamp(min=_TINY)[..., None]
    numbers = numbers.round_().clamp_(0, _INT4_MAX).to(torch.uint8)
    half = GROUP // 2
    data = numbers[..., :half] | (numbers[..., half:] << 4)
    return data.contiguous(), scales.contiguous(), offsets.contiguous()
