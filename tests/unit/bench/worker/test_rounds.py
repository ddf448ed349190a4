"""The order of the turns, and what becomes of a process that fails."""

from pathlib import Path

import pytest

from zerolayer_bench.worker import rounds
from zerolayer_bench.worker.cases import OFFERS, OURS, Cell, Contender, contenders
from zerolayer_bench.worker.machine import Clock, high_water_mib, parse_stat


def plan(tmp_path: Path, turns: int = 2) -> rounds.Plan:
    return rounds.Plan(
        contenders=(Contender("a", "fp32"), Contender("b", "fp32")),
        cells=(Cell(8, 32, 4), Cell(1, 32, 4), Cell(1, 64, 4)),
        rounds=turns,
        cache=tmp_path,
        threads=1,
        patience_s=0,
        quiet_share=1.0,
    )


def test_contenders_take_turns(tmp_path: Path) -> None:
    turns = [(turn, batch, who.engine) for turn, batch, who in plan(tmp_path).turns()]
    once = [(1, "a"), (1, "b"), (8, "a"), (8, "b")]
    assert turns == [(0, *turn) for turn in once] + [(1, *turn) for turn in once]


def test_only_engines_that_have_the_precision() -> None:
    found = contenders(["int4", "bf16"], list(OFFERS))
    assert Contender("transformers", "int4") not in found
    assert {one.precision for one in found if one.engine == OURS} == {"int4", "bf16"}


def test_a_contender_that_failed_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def call(job: dict[str, object], _limit: float) -> tuple[list[dict[str, object]], str | None]:
        asked.append((str(job["engine"]), int(str(job["batch"]))))
        return [], "broken" if job["engine"] == "a" else None

    monkeypatch.setattr(rounds, "call", call)
    monkeypatch.setattr(rounds, "wait_until_quiet", lambda _share, _patience: True)
    _samples, missing = rounds.run(plan(tmp_path), lambda _line: None)
    assert asked == [("a", 1), ("b", 1), ("a", 8), ("b", 8), ("b", 1), ("b", 8)]
    assert [(one.batch, one.reason) for one in missing] == [(1, "broken"), (8, "broken")]


def test_a_process_that_dies_leaves_its_last_words() -> None:
    lines, reason = rounds.call({}, 60, module="zerolayer_bench.worker.not_there")
    assert lines == []
    assert reason is not None
    assert reason.startswith("ended with status 1")
    assert reason.endswith("No module named zerolayer_bench.worker.not_there")


def test_busy_and_all_time_of_the_processors() -> None:
    assert parse_stat("cpu  100 50 30 800 20 1 2 7 0 0", 100) == pytest.approx((1.9, 10.1))


@pytest.mark.parametrize(
    ("after", "share"),
    [(Clock(2.0, 1.0, 10.0), 0.0), (Clock(6.0, 1.0, 10.0), 0.4), (Clock(1.0, 1.0, 0.0), 0.0)],
)
def test_share_of_the_others(after: Clock, share: float) -> None:
    assert after.others_share(Clock(1.0, 0.0, 0.0)) == pytest.approx(share)


def test_peak_of_the_resident_set() -> None:
    assert high_water_mib(["Name: x", "VmHWM:\t  2048 kB", "VmRSS:\t 1024 kB"]) == 2.0
