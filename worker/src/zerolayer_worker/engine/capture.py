"""Captures a runner's decode steps as CUDA graphs."""

import logging
from collections.abc import Callable

import torch
from torch import Tensor

from zerolayer_worker.engine.graphs import Capture, DecodeGraphs, Replay
from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.models.kv_cache import pages_for

_log = logging.getLogger(__name__)


class CudaCapture:
    """See `Capture`. All graphs share their memory, as only one runs at a time."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, function: Callable[[], Tensor]) -> Replay:
        """Runs the function twice: what it builds at first use can't be captured."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            function()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            found = function()

        def replay() -> Tensor:
            graph.replay()
            return found

        return replay


def may_capture(wanted: bool | None, runner: Runner) -> bool:
    """Whether decode steps are to be captured: by default on GPUs. Logs what stands against it."""
    model = runner.model
    if wanted is False or (wanted is None and model.device.type != "cuda"):
        return False
    obstacle = None
    if model.device.type != "cuda":
        obstacle = "they are for GPUs"
    elif not model.paged:
        obstacle = "attention through torch can't be captured"
    if obstacle is not None:
        _log.warning("CUDA graphs are left out", extra={"reason": obstacle})
    return obstacle is None


@torch.inference_mode()
def capture_steps(runner: Runner, capture: Callable[[], Capture] = CudaCapture) -> DecodeGraphs | None:
    """All sizes of the runner's steps; None where capturing fails, which is logged with the reason.

    `capture` makes what captures.
    """
    model, cache = runner.model, runner.cache
    try:
        return DecodeGraphs(
            lambda rows: model.step(rows, cache),
            runner.sizes,
            pages=min(cache.pages, pages_for(model.length, cache.page)),
            page=cache.page,
            device=model.device,
            capture=capture(),
        )
    except RuntimeError as error:
        _log.warning("decode steps run without CUDA graphs", extra={"reason": str(error)})
        return None
