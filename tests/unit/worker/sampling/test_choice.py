import torch

from zerolayer_worker.models.head import LmHead
from zerolayer_worker.sampling.choice import sampler_for
from zerolayer_worker.sampling.naive import NaiveSampler
from zerolayer_worker.sampling.tiled import TiledSampler


def test_on_a_cpu_the_tiled_sampler_serves() -> None:
    weight = torch.randn(20, 8)
    assert isinstance(sampler_for(LmHead(weight), weight), TiledSampler)


def test_the_path_over_kept_logits_serves_where_it_is_asked_for() -> None:
    weight = torch.randn(20, 8)
    assert isinstance(sampler_for(LmHead(weight), weight, "naive"), NaiveSampler)
