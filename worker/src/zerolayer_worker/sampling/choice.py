"""Which sampler serves."""

from importlib.util import find_spec

from torch import Tensor

from zerolayer_worker.sampling.provider import Head, SamplerProvider
from zerolayer_worker.sampling.tiled import TiledSampler


def sampler_for(head: Head, weight: Tensor) -> SamplerProvider:
    """The sampler for where the head's `weight` `[vocab, hidden_size]` lies: Triton's kernels on GPUs.

    Triton comes with torch for CUDA; a CPU's worker needs neither.
    """
    if weight.device.type != "cuda" or find_spec("triton") is None:
        return TiledSampler(head)
    from zerolayer_worker.sampling.triton_sampler import TritonSampler  # noqa: PLC0415 - see above

    return TritonSampler(weight.contiguous(), head)
