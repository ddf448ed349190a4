"""Which sampler serves."""

from importlib.util import find_spec

import torch
from torch import Tensor

from zerolayer_worker.sampling.naive import NaiveSampler
from zerolayer_worker.sampling.native import Choosing, NativeSampler
from zerolayer_worker.sampling.provider import Head, SamplerProvider
from zerolayer_worker.sampling.tiled import TiledSampler


def sampler_for(
    head: Head, weight: Tensor, kind: str = "auto", choosing: Choosing | None = None
) -> SamplerProvider:
    """The sampler for where the head's `weight` `[vocab, hidden_size]` lies: Triton's kernels on GPUs.

    Triton comes with torch for CUDA; a CPU's worker needs neither. There `choosing`, the native step, serves
    where it can be had. `kind` is `auto`, or `naive` for the oracle, which then computes in fp32 as engines
    that keep logits do.
    """
    if kind == "naive":
        return NaiveSampler(head, torch.float32)
    if choosing is not None:
        return NativeSampler(head, choosing)
    if weight.device.type != "cuda" or find_spec("triton") is None:
        return TiledSampler(head)
    from zerolayer_worker.sampling.triton_sampler import TritonSampler  # noqa: PLC0415 - see above

    return TritonSampler(weight.contiguous(), head)
