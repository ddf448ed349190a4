from pathlib import Path

import pytest

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.engine.memory import (
    PoolPlan,
    activation_bytes,
    memory_limit,
    page_bytes,
    plan_pool,
    resident_bytes,
)
from zerolayer_worker.models.config import read_config

MACHINE = 8 * 2**30


@pytest.fixture
def meminfo(tmp_path: Path) -> Path:
    path = tmp_path / "meminfo"
    path.write_text(f"MemFree: 17 kB\nMemTotal:  {MACHINE // 1024} kB\n")
    return path


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("none", "", MACHINE),
        ("memory.max", "max\n", MACHINE),
        ("memory.max", "1073741824\n", 2**30),
        ("memory/memory.limit_in_bytes", "536870912\n", 2**29),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", MACHINE),
    ],
)
def test_the_smaller_of_limit_and_machine_counts(
    tmp_path: Path, meminfo: Path, name: str, content: str, expected: int
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    assert memory_limit(tmp_path, meminfo) == expected


def test_this_process_has_some_memory(tmp_path: Path) -> None:
    assert 2**20 < resident_bytes() < memory_limit()


def test_a_page_and_a_step_are_counted_in_bytes(tmp_path: Path) -> None:
    model = read_config(make_tiny_model(tmp_path))
    assert page_bytes(model, 32, 4) == 2 * 2 * 2 * 32 * 16 * 4
    small, large = (activation_bytes(model, chunk=128, length=length) for length in (256, 4096))
    assert small < large


def plan(
    room: int | None, length: int = 1000, tokens: int | None = None, fixed: bool = False
) -> tuple[int, int]:
    found = plan_pool(room=room, page=32, page_size=10, rows=4, length=length, tokens=tokens, fixed=fixed)
    assert isinstance(found, PoolPlan)
    return found.pages, found.length


@pytest.mark.parametrize(
    ("room", "tokens", "expected"),
    [
        pytest.param(10**9, None, (128, 1000), id="all rows at full length"),
        pytest.param(400, None, (40, 1000), id="what fits"),
        pytest.param(100, None, (10, 320), id="not even one context"),
        pytest.param(None, 2000, (62, 1000), id="as said"),
        pytest.param(None, 64, (2, 64), id="less than a context, as said"),
    ],
)
def test_pages_by_what_there_is(room: int | None, tokens: int | None, expected: tuple[int, int]) -> None:
    assert plan(room, tokens=tokens) == expected


def test_a_context_that_was_asked_for_has_to_fit() -> None:
    assert plan(320, fixed=True) == (32, 1000)
    with pytest.raises(ValueError, match=r"max_model_len 1000 does not fit.* 320 tokens"):
        plan(100, fixed=True)


@pytest.mark.parametrize(("room", "tokens"), [(9, None), (0, None), (None, 31)])
def test_no_room_for_a_page_is_an_error(room: int | None, tokens: int | None) -> None:
    with pytest.raises(ValueError, match="no memory is left"):
        plan(room, tokens=tokens)
