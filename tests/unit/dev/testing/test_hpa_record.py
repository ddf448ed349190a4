import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from zerolayer_dev.testing.audit import Call, Permission
from zerolayer_dev.testing.hpa_record import CONTROLLER, Sync, lives
from zerolayer_dev.testing.hpa_series import generate
from zerolayer_dev.testing.hpa_stage import autoscaler, setting_of
from zerolayer_dev.testing.metrics_api import Answer, Fault, Query


def call(at: float, verb: str, replicas: int, code: int = 200, existing: int = 0) -> Call:
    scale = {"spec": {"replicas": replicas}, "status": {"replicas": existing}}
    return Call(
        user=CONTROLLER,
        permission=Permission("testing", "scalables/scale", verb),
        namespace="default",
        name="a",
        code=code,
        allowed=True,
        at=datetime.fromtimestamp(at, UTC),
        done_at=datetime.fromtimestamp(at + 0.125, UTC),
        sent=scale if verb == "update" else None,
        answered=scale,
    )


def query(at: float, answered_at: float) -> Query:
    return Query("a", "setting=0", at, answered_at, Answer((1,)))


def log(folder: Path, entries: Iterable[tuple[float, str, dict[str, Any]]]) -> Path:
    lines = [json.dumps({"ts": at * 1000, "msg": said, **what}) for at, said, what in entries]
    path = folder / "manager.log"
    path.write_text("\n".join(["no JSON", *lines]))
    return path


def test_a_sync_is_what_follows_a_look_at_the_scale(tmp_path: Path) -> None:
    calls = [call(1, "get", 3, existing=2), call(1.5, "update", 4), call(2, "get", 4), call(3, "get", 4)]
    ends = [
        (1.4, "Proposing desired replicas", {"scaleTarget": "Scalable/default/a", "desiredReplicas": 9}),
        (1.6, "Successfully rescaled", {"HPA": {"name": "a"}, "desiredReplicas": 4}),
        (2.25, "Decided not to scale", {"scaleTarget": "Scalable/default/a", "desiredReplicas": 4}),
        (2.5, "Other", {}),
    ]
    asked = [query(1.25, 1.375), query(2.125, 2.1875)]

    assert lives(calls, asked, log(tmp_path, ends), restarted_at=2.75) == {
        "a": (
            [
                Sync(1.125, 3, 2, asked[0], proposed=9, proposed_at=1.4, wrote=4, done_at=1.6),
                Sync(2.125, 4, 0, asked[1], done_at=2.25),
            ],
            [Sync(3.125, 4, 0)],
        )
    }


def test_a_write_refused_for_a_conflict_belongs_to_the_one_that_follows(tmp_path: Path) -> None:
    calls = [call(1, "get", 3), call(1.5, "update", 5, code=409), call(1.6, "get", 9), call(1.7, "update", 5)]

    ((found,), after) = lives(calls, [query(1.25, 1.375)], log(tmp_path, []), restarted_at=1.75)["a"]

    assert after == []
    assert (found.replicas, found.wrote, found.conflicts, found.size, found.at) == (3, 5, 1, 5, 1.375)


def test_a_new_controller_goes_on_with_nothing_that_the_old_one_tried(tmp_path: Path) -> None:
    calls = [call(1, "get", 30), call(1.5, "update", 5, code=409), call(20, "get", 30)]

    before, after = lives(calls, [query(20.25, 20.5)], log(tmp_path, []), restarted_at=2)["a"]

    assert before == [Sync(1.125, 30, 0, conflicts=1)]
    assert [sync.read_at for sync in after] == [20.125]


def test_without_a_usable_answer_there_is_no_sum() -> None:
    assert Answer((1, 2)).sum_milli == 3
    assert Answer().sum_milli is None
    assert Answer((1,), Fault.ERROR).sum_milli is None


def test_series_are_the_same_for_the_same_seed_and_have_names_of_their_own() -> None:
    series = generate(Random(1), 60)

    assert series == generate(Random(1), 60) != generate(Random(2), 60)
    assert len({item.name for item in series}) == len(series) >= 20


def test_an_autoscalers_query_tells_which_setting_it_was_made_under() -> None:
    series = next(item for item in generate(Random(1), 60) if len(item.settings) > 1)
    (metric,) = autoscaler(series, 1)["spec"]["metrics"]
    labels = metric["external"]["metric"]["selector"]["matchLabels"]

    assert setting_of(",".join(f"{key}={value}" for key, value in labels.items())) == 1


def test_what_is_the_default_is_left_to_the_api_server() -> None:
    by_name = {item.name: autoscaler(item, 0)["spec"] for item in generate(Random(1), 60)}

    assert by_name["defaults"]["behavior"] == {"scaleUp": {}, "scaleDown": {}}
    assert "behavior" not in by_name["no-behavior"]
