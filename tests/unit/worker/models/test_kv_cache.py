from pathlib import Path

import pytest
import torch

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.kv_cache import KvCache, fixed_tables, page_tokens, pages_for


def test_holds_every_layer_page_and_token(tmp_path: Path) -> None:
    config = read_config(make_tiny_model(tmp_path))
    cache = KvCache(config, 7, torch.bfloat16, torch.device("cpu"), page=8)
    assert cache.keys.shape == cache.values.shape == (2, 7, 2, 8, 16)
    assert (cache.pages, cache.page, cache.keys.dtype) == (7, 8, torch.bfloat16)


@pytest.mark.parametrize(("chunk", "page"), [(128, 32), (32, 32), (16, 16), (48, 16), (100, 4), (7, 1)])
def test_pages_fill_chunks(chunk: int, page: int) -> None:
    assert page_tokens(chunk) == page


@pytest.mark.parametrize(("tokens", "pages"), [(0, 0), (1, 1), (8, 1), (9, 2)])
def test_counts_begun_pages(tokens: int, pages: int) -> None:
    assert pages_for(tokens, 8) == pages


def test_fixed_tables_share_no_page() -> None:
    assert [list(table) for table in fixed_tables(2, 17, 8)] == [[0, 1, 2], [3, 4, 5]]
