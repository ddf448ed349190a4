"""What happens around loading, beside what a process' tests see from outside."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zerolayer_worker.config import WorkerConfig
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.loading import load_in_thread


@pytest.fixture
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("thawed")
async def test_what_was_loaded_is_no_work_for_the_collector(tmp_path: Path) -> None:
    loaded: list[Any] = [[object()]]
    before = gc.get_freeze_count()
    engine = await load_in_thread(
        WorkerConfig(model_path=tmp_path), lambda _config, _stage: loaded[0], Lifecycle(30), asyncio.Event()
    )
    assert engine is loaded[0]
    assert gc.get_freeze_count() > before
    assert not any(each is loaded[0] for each in gc.get_objects())
