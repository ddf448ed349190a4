from pathlib import Path

import torch

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache


def test_holds_every_layer_slot_and_position(tmp_path: Path) -> None:
    cache = KvCache(read_config(make_tiny_model(tmp_path)), 3, 50, torch.bfloat16, torch.device("cpu"))
    assert cache.keys.shape == cache.values.shape == (2, 3, 2, 50, 16)
    assert (cache.slots, cache.length, cache.keys.dtype) == (3, 50, torch.bfloat16)
