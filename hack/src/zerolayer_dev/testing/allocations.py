"""Watches every tensor that torch creates: the largest one, and the most memory alive at once."""

import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Allocations(TorchDispatchMode):
    """Use as a context around the code under watch.

    Attributes:
        largest: most elements of any tensor created inside, views aside.
        peak: most bytes alive at once of what was created inside.
    """

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0
        self.peak = 0
        self._alive = 0
        self._seen: set[int] = set()

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs the operator and counts the storages it returns for the first time."""
        given = {
            leaf.untyped_storage().data_ptr()
            for leaf in tree_leaves((args, kwargs))
            if isinstance(leaf, torch.Tensor) and _has_storage(leaf)
        }
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and _has_storage(leaf):
                self._count(leaf, given)
        return result

    def _count(self, tensor: torch.Tensor, given: set[int]) -> None:
        storage = tensor.untyped_storage()
        identity = storage.data_ptr()
        if identity in given or identity in self._seen:
            return
        size = storage.nbytes()
        self._seen.add(identity)
        self._alive += size
        self.peak = max(self.peak, self._alive)
        self.largest = max(self.largest, tensor.numel())
        weakref.finalize(storage, self._release, identity, size)

    def _release(self, identity: int, size: int) -> None:
        self._seen.discard(identity)
        self._alive -= size


def peak_bytes(step: Callable[[], object]) -> int:
    """The most bytes of torch's operators alive at once, plus the most of numpy's and Python's."""
    with Allocations(), torch.inference_mode():
        step()  # what is imported or built at first use is not the step's
    tracemalloc.start()
    try:
        with Allocations() as watched, torch.inference_mode():
            step()
        return watched.peak + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _has_storage(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_mkldnn
