"""The native library's functions and structures; names and fields are those in `csrc`."""

import ctypes
from typing import TYPE_CHECKING, Any, Final

from torch import Tensor

from zerolayer_worker.models.native.build import NativeError, find_library
from zerolayer_worker.models.quantised import BlockedMatrix

if TYPE_CHECKING:
    from collections.abc import Callable

_POINTER: Final = ctypes.c_void_p
_INT: Final = ctypes.c_int32
_LONG: Final = ctypes.c_int64


class Matrix(ctypes.Structure):
    """A `BlockedMatrix` with its bias, which is fp32 `[rows]`."""

    _fields_ = (
        *((name, _POINTER) for name in ("data", "scales", "offsets", "bias")),
        *((name, _LONG) for name in ("rows", "columns")),
        ("format", _INT),
    )


class Layer(ctypes.Structure):
    """One layer's weights; norms are fp32."""

    _fields_ = (
        *((name, _POINTER) for name in ("attention_norm", "query_norm", "key_norm", "mlp_norm")),
        *((name, Matrix) for name in ("qkv", "output", "gate_up", "down")),
        ("rotated", _INT),
    )


class Model(ctypes.Structure):
    """A model's shape and weights; the tables are fp32 `[positions, head_dim]`."""

    _fields_ = (
        *((name, _INT) for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "inner")),
        *((name, ctypes.c_float) for name in ("eps", "scale")),
        *((name, _POINTER) for name in ("norm", "cosines", "sines", "layer")),
    )


class Pages(ctypes.Structure):
    """A `KvCache`; format 0 is fp32, 1 is bf16."""

    _fields_ = (
        *((name, _POINTER) for name in ("keys", "values")),
        *((name, _LONG) for name in ("pages", "page_size")),
        ("format", _INT),
    )


class Rows(ctypes.Structure):
    """A step's rows: int32 positions `[count]` and block tables `[count, table_width]`."""

    _fields_ = (
        *((name, _INT) for name in ("count", "table_width")),
        *((name, _POINTER) for name in ("positions", "tables")),
    )


class Part(ctypes.Structure):
    """Tokens of a prompt in a row; `table` is int32, the sequence's pages up to the last one's or further."""

    _fields_ = (
        *((name, _INT) for name in ("start", "count")),
        ("table", _POINTER),
    )


class Kernels:
    """The loaded library with its threads, which sleep while there is nothing to do.

    Not safe for use by two threads at once. The threads live until `close`, or the process's end.

    Attributes:
        name: of the library: its sources, flags and kind of CPU.
        prompts: whether the CPU has the instructions that make native prompts worth it.
        library: for further functions.
        context: the handle that they take.
    """

    def __init__(self, threads: int) -> None:
        """Loads the library, compiling it where that has not been done.

        Raises:
            NativeError: it can't be had.
        """
        path = find_library()
        try:
            library: Any = ctypes.CDLL(str(path))
        except OSError as error:
            raise NativeError(f"{path} can't be loaded: {error}") from None
        library.zl_open.restype = _POINTER
        library.zl_open.argtypes = [_INT]
        library.zl_close.argtypes = [_POINTER]
        library.zl_decode.argtypes = [_POINTER] * 5
        library.zl_prefill.argtypes = [_POINTER] * 6
        library.zl_multiply.argtypes = [_POINTER, _POINTER, _POINTER, _INT, _POINTER]
        for function in (library.zl_close, library.zl_decode, library.zl_prefill, library.zl_multiply):
            function.restype = None
        self.name: str = path.stem
        self.library: Any = library
        self.context: int = library.zl_open(threads)
        self._close: Callable[..., None] = library.zl_close
        self._decode: Callable[..., None] = library.zl_decode
        self._prefill: Callable[..., None] = library.zl_prefill
        self._multiply: Callable[..., None] = library.zl_multiply
        self.prompts: bool = bool(library.zl_fused())

    def decode(self, model: Model, pages: Pages, rows: Rows, x: Tensor) -> None:
        """Turns `x`, fp32 `[rows, hidden]` embeddings, into final hidden states; stores keys and values."""
        arguments = (ctypes.byref(each) for each in (model, pages, rows))
        self._decode(self.context, *arguments, x.data_ptr())

    def prefill(self, model: Model, pages: Pages, part: Part, x: Tensor, out: Tensor) -> None:
        """Computes the last token's final hidden state, `out` fp32 `[1, hidden]`; stores keys and values.

        `x` is fp32 `[tokens, hidden]`, the tokens' embeddings.
        """
        arguments = (ctypes.byref(each) for each in (model, pages, part))
        self._prefill(self.context, *arguments, x.data_ptr(), out.data_ptr())

    def multiply(self, matrix: Matrix, x: Tensor, out: Tensor) -> None:
        """`x` fp32 `[n, columns]` times the matrix's rows, into `out` fp32 `[n, rows]`."""
        self._multiply(self.context, ctypes.byref(matrix), x.data_ptr(), x.shape[0], out.data_ptr())

    def close(self) -> None:
        """Ends the threads."""
        self._close(self.context)


def matrix_of(blocked: BlockedMatrix, bias: Tensor | None = None) -> Matrix:
    """Points at the tensors, which the caller keeps."""
    return Matrix(
        data=blocked.data.data_ptr(),
        scales=address(blocked.scales),
        offsets=address(blocked.offsets),
        bias=address(bias),
        rows=blocked.rows,
        columns=blocked.columns,
        format=blocked.format,
    )


def address(tensor: Tensor | None) -> int | None:
    """Where the tensor's numbers are; None for none."""
    return None if tensor is None else tensor.data_ptr()
