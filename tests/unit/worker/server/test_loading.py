"""What happens around loading, beside what a process' tests see from outside."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zerolayer_worker.common.anchor import BundleError, BundleReason
from zerolayer_worker.config import WorkerConfig
from zerolayer_worker.server import loading
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.loading import NotLoadedError, load_in_thread


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


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        (BundleError(BundleReason.NOT_FINITE, "a NaN"), 2, "AnchorNotFinite: a NaN"),
        (
            FloatingPointError("no numbers"),
            1,
            "the model could not be loaded (stage load): no numbers; the w",
        ),
    ],
)
async def test_the_last_word_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, code: int, message: str
) -> None:
    left: list[str] = []
    monkeypatch.setattr(loading, "leave_message", left.append)

    def load(*_: object) -> Any:
        raise fault

    with pytest.raises(NotLoadedError) as caught:
        await load_in_thread(WorkerConfig(model_path=tmp_path), load, Lifecycle(30), asyncio.Event())
    assert caught.value.exit_code == code
    assert len(left) == 1
    assert left[0].startswith(message)
