import torch

from zerolayer_worker.models.head import LmHead
from zerolayer_worker.sampling.choice import sampler_for
from zerolayer_worker.sampling.tiled import TiledSampler


def test_on_a_cpu_the_tiled_sampler_serves() -> None:
    weight = torch.randn(20, 8)
    assert isinstance(sampler_for(LmHead(weight), weight), TiledSampler)
