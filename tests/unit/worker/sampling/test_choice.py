import torch

from zerolayer_dev.testing.sampling_cases import native_choosing
from zerolayer_worker.models.head import LmHead
from zerolayer_worker.sampling.choice import sampler_for
from zerolayer_worker.sampling.naive import NaiveSampler
from zerolayer_worker.sampling.native import NativeSampler
from zerolayer_worker.sampling.tiled import TiledSampler


def test_on_a_cpu_without_the_native_step_the_tiled_sampler_serves() -> None:
    weight = torch.randn(20, 8)
    assert isinstance(sampler_for(LmHead(weight), weight), TiledSampler)


def test_on_a_cpu_with_it_the_native_sampler_serves() -> None:
    weight = torch.randn(20, 8)
    assert isinstance(sampler_for(LmHead(weight), weight, choosing=native_choosing()), NativeSampler)


def test_the_path_over_kept_logits_serves_where_it_is_asked_for() -> None:
    weight = torch.randn(20, 8)
    for choosing in (None, native_choosing()):
        assert isinstance(sampler_for(LmHead(weight), weight, "naive", choosing), NaiveSampler)
