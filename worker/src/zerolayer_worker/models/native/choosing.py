"""The native sampling step; names, structures and limits are those of `csrc/sampling.h`."""

import ctypes
from collections.abc import Sequence
from typing import Any, Final

from torch import Tensor

from zerolayer_worker.models.native.library import Kernels

MOST_FINALISTS: Final = 8
_POINTER: Final = ctypes.c_void_p
_INT: Final = ctypes.c_int32
_LONG: Final = ctypes.c_int64


class Finalist(ctypes.Structure):
    """A token that may be the choice, with its score and the score before penalties."""

    _fields_ = (("token", _LONG), ("score", ctypes.c_float), ("raw", ctypes.c_float))


class NativeChoosing:
    """Sees a head's tiles one after the other and chooses a token for each row of a batch.

    Between `begin` and `finish` nothing else may use the kernels but their products.
    """

    def __init__(self, kernels: Kernels) -> None:
        """Uses the threads of `kernels`, which it keeps."""
        self._kernels = kernels
        library: Any = kernels.library
        for name, result, arguments in (
            ("open", _POINTER, [_POINTER]),
            ("close", None, [_POINTER]),
            ("begin", None, [_POINTER, ctypes.c_char_p, _INT, _LONG, _LONG, _INT]),
            ("take", None, [_POINTER, _POINTER, _LONG, _LONG, _LONG]),
            ("finish", None, [_POINTER, _POINTER]),
            ("finalists", None, [_POINTER, _INT, _POINTER]),
            ("report", _LONG, [_POINTER, _INT, _POINTER, _POINTER]),
            ("bytes", _LONG, [_POINTER]),
        ):
            function = getattr(library, f"zl_sampling_{name}")
            function.restype, function.argtypes = result, arguments
        self._library = library
        self._state: int = library.zl_sampling_open(kernels.context)

    @property
    def library(self) -> str:
        """Names the library: its sources, flags and kind of CPU."""
        return self._kernels.name

    @property
    def kept_bytes(self) -> int:
        """What it keeps between two calls."""
        return self._library.zl_sampling_bytes(self._state)

    def begin(self, wishes: bytes, count: int, vocab_size: int, candidates: int, *, again: bool) -> None:
        """Takes `count` rows' `Wish`es; what these point at has to live until `finish`.

        Args:
            wishes: the structures, one behind the other.
            count: number of rows.
            vocab_size: number of tokens there are.
            candidates: length of the list of best tokens that filters are decided from.
            again: whether this is the second walk, with a longer list than the first one.
        """
        self._library.zl_sampling_begin(self._state, wishes, count, vocab_size, candidates, again)

    def take(self, scores: Tensor, start: int) -> None:
        """Takes the next tile's fp32 scores `[count or more, width]`; `start` is its first token."""
        if scores.stride(1) != 1:
            scores = scores.contiguous()
        self._library.zl_sampling_take(
            self._state, scores.data_ptr(), scores.stride(0), start, scores.shape[1]
        )

    def finish(self, outcomes: bytearray) -> None:
        """Writes one `Outcome` per row."""
        self._library.zl_sampling_finish(self._state, (ctypes.c_char * len(outcomes)).from_buffer(outcomes))

    def finalists(self, row: int, count: int) -> Sequence[tuple[int, float, float]]:
        """Token ids, scores and scores before penalties of a row with several finalists, after `finish`."""
        found = (Finalist * MOST_FINALISTS)()
        self._library.zl_sampling_finalists(self._state, row, found)
        return [(each.token, each.score, each.raw) for each in found[:count]]

    def best(self, row: int, most: int) -> Sequence[tuple[int, float]]:
        """The `most` best tokens before penalties of a row with log-probabilities, best first."""
        tokens, scores = (_LONG * max(1, most))(), (ctypes.c_float * max(1, most))()
        count = self._library.zl_sampling_report(self._state, row, tokens, scores)
        return list(zip(tokens[:count], scores[:count], strict=True))

    def close(self) -> None:
        """Frees its memory; the kernels must still be open."""
        self._library.zl_sampling_close(self._state)
