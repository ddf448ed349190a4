"""What the status screen, its line and the history say at every step."""

import json
from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing.updating_pools import (
    BLUE,
    GREEN,
    NOW,
    body_with,
    condition,
    failed,
    finished,
    revision_deployment,
    status_with,
    update_at,
)
from zerolayer_kubectl.fields import seconds
from zerolayer_kubectl.pool import Pool, read
from zerolayer_kubectl.screen import document, history, line, screen
from zerolayer_kubectl.words import bar, span
from zerolayer_operator.api.status import Phase, ScalingStatus
from zerolayer_operator.api.update_status import End, Step, Wish

CANARY = f"CANARY      {GREEN} (anchor v2)   1/1 ready"
SIDES = f"{BLUE} 3/3 ready, {GREEN} 1/1 ready"
GOLDEN = {"configMap": {"name": "facts-golden"}}
SCALING = ScalingStatus(window="120s", hold=3, why="flatness 0.93 over 20m: 300s → 120s")


def pool(status: dict[str, Any], **more: Any) -> Pool:
    return read(
        body_with(status, **more), [revision_deployment(BLUE, 3, 3), revision_deployment(GREEN, 1, 1)]
    )


def test_a_soak_on_one_screen() -> None:
    lines = screen(pool(status_with(update_at(Step.SOAK), scaling=SCALING)), NOW)

    assert lines == [
        "POOL        facts in namespace team",
        "PHASE       Updating",
        f"SERVING     {BLUE} (anchor v1)   3/3 ready",
        f"{CANARY}   10% of the requests",
        "STEP        Soak for 6h, by operator",
        "SOAK        [#####...............] 6h of 24h",
        "SAMPLES     180, 500 needed",
        "VERDICT     Undecided (TooFewSamples: 180 of the 500 requests on green that a verdict needs)",
        "CHECKS      Ok       errors        error rate 0 % on green",
        "            NoData   consistency   no request was asked again",
        "            Off      dds           off in this pool",
        "WINDOW      120s, at least 3 workers: flatness 0.93 over 20m: 300s → 120s",
    ]


@pytest.mark.parametrize(
    ("step", "changes", "row"),
    [
        (Step.PREPARE, {}, f"{CANARY}   no requests before it is warm"),
        (Step.RETAIN, {}, f"FORMER      {BLUE} (anchor v1)   3/3 ready"),
        (Step.ROLL_BACK, {}, f"{CANARY}   no new requests"),
        (Step.PROMOTE, {}, "STEP        Promote for 2m, by verdict"),
        (
            Step.SOAK,
            {"share": 25, "weight": 0},
            f"{CANARY}   no requests: 25% of the ready workers would be more than twice 10%",
        ),
        (
            Step.SOAK,
            {"share": 14, "weight": 14},
            f"{CANARY}   14% of the requests, as of the ready workers (10% wanted, no gateway)",
        ),
        (
            Step.SOAK,
            {"soak_started_at": "2026-11-29T11:00:00Z"},
            "SOAK        [####################] 25h of 24h, extended to at most 72h",
        ),
    ],
    ids=["prepare", "retain", "roll back", "promote", "share too large", "share of workers", "extended"],
)
def test_a_row_of_the_screen(step: Step, changes: dict[str, Any], row: str) -> None:
    assert row in screen(pool(status_with(update_at(step, **changes))), NOW)


def test_the_screen_without_an_update() -> None:
    problem = condition("Degraded", "WrongAnswers", "revision x was not taken over", holds=True)
    status = status_with(
        phase=Phase.DEGRADED, conditions=(problem,), failed=failed(), history=(finished(End.ROLLED_BACK),)
    )

    assert screen(pool(status), NOW)[3:] == [
        "PROBLEM     WrongAnswers: revision x was not taken over",
        f"FAILED      revision {GREEN}, WrongAnswers; a worker is kept until 2026-11-30 12:40:00 UTC",
        f"LAST UPDATE to {GREEN} (anchor v2): RolledBack (WrongAnswers), 2026-11-30 11:00:00 UTC",
    ]


def test_wishes_and_an_operator_that_lags_are_told() -> None:
    found = pool(status_with(update_at(Step.SOAK)), annotations={"zerolayer.dev/promote": GREEN})
    stale = read({**body_with(status_with()), "metadata": {"name": "facts", "generation": 2}}, None)

    assert f"ASKED       to promote revision {GREEN}, by annotation zerolayer.dev/promote" in screen(
        found, NOW
    )
    assert screen(stale, NOW)[1] == "PHASE       Ready; the operator has not looked at the latest spec yet"


def test_a_wish_that_decides_nothing_is_told_as_such() -> None:
    asked = {"zerolayer.dev/promote": GREEN, "zerolayer.dev/rollback": GREEN}
    update = update_at(Step.SOAK, standing_wishes=(Wish.ROLL_BACK,))
    found = pool(status_with(update), annotations=asked)
    lines = screen(found, NOW)

    assert [line for line in lines if "zerolayer.dev/" in line] == [
        f"ASKED       to promote revision {GREEN}, by annotation zerolayer.dev/promote",
        "ANNOTATION  zerolayer.dev/rollback is of an earlier update and decides nothing",
    ]
    assert document(found, NOW)["asked"] == {"promote": GREEN, "rollback": None}
    assert document(found, NOW)["update"]["standingWishes"] == ["rollback"]


@pytest.mark.parametrize(
    ("settings", "weight", "samples"),
    [
        ({"golden": GOLDEN}, 10, "180, 500 needed"),
        ({"golden": GOLDEN}, 0, "180, none needed: the golden set judges"),
        ({"golden": GOLDEN, "checks": {"errorRate": False, "latency": False}}, 10, "180, none needed"),
        ({"checks": {"errorRate": False, "latency": False}}, 10, "180, 500 needed"),
        ({}, 0, "180, 500 needed"),
    ],
)
def test_how_many_answers_a_verdict_needs(settings: dict[str, Any], weight: int, samples: str) -> None:
    found = pool(status_with(update_at(Step.SOAK, weight=weight, share=50)), update=settings)

    assert next(line for line in screen(found, NOW) if "SAMPLES" in line).startswith(f"SAMPLES     {samples}")


def test_a_narrow_terminal_breaks_lines_under_their_column() -> None:
    lines = screen(pool(status_with(update_at(Step.SOAK))), NOW, 60)

    assert max(map(len, lines)) <= 60
    assert "VERDICT     Undecided (TooFewSamples: 180 of the 500" in lines
    assert lines[lines.index("VERDICT     Undecided (TooFewSamples: 180 of the 500") + 1].startswith(" " * 12)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (
            status_with(update_at(Step.SOAK)),
            f"Soak: {SIDES}; {GREEN} gets 10% of the requests; Undecided after 180 answers, TooFewSamples",
        ),
        (
            status_with(history=(finished(End.PROMOTED),)),
            f"Ready: {BLUE} (anchor v1) 3/3 ready; last update: to {GREEN} (anchor v2), Promoted (NoWorse)",
        ),
        ({}, "not seen yet: no revision serves yet"),
    ],
    ids=["soak", "over", "unseen"],
)
def test_the_line_that_tells_of_a_change(status: dict[str, Any], told: str) -> None:
    assert line(pool(status)) == told


def test_the_document_has_figures_and_no_evidence() -> None:
    found = json.loads(json.dumps(document(pool(status_with(update_at(Step.SOAK), scaling=SCALING)), NOW)))

    assert found["serving"] == {"revision": BLUE, "anchor": "v1", "replicas": 3, "readyReplicas": 3}
    assert found["other"] == {"revision": GREEN, "anchor": "v2", "replicas": 1, "readyReplicas": 1}
    assert found["soak"] == {"elapsedSeconds": 21600, "totalSeconds": 86400, "longestSeconds": 259200}
    assert found["update"]["step"] == "Soak"
    assert "evidence" not in found["update"]
    assert found["scaling"]["window"] == "120s"


def test_history_is_a_table_with_the_newest_first() -> None:
    past = (finished(End.ROLLED_BACK, from_anchor=None), finished(End.PROMOTED, duration_seconds=75))
    head, *rows = history(pool(status_with(history=past)), wide=False)
    wide = history(pool(status_with(history=past)), wide=True)

    assert head.split() == ["FINISHED", "FROM", "TO", "ANCHOR", "END", "REASON", "SAMPLES", "TOOK", "BY"]
    assert "- > v2    RolledBack   WrongAnswers   2210      24h5m" in rows[0]
    assert "v1 > v2   Promoted     NoWorse        2210      1m15s" in rows[1]
    assert wide[1].endswith("12 of 50 golden answers as expected")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0s"), (-3, "0s"), (59.6, "1m"), (61, "1m1s"), (3600, "1h"), (22_379, "6h12m"), (86_400, "24h")],
)
def test_spans(seconds: float, told: str) -> None:
    assert span(timedelta(seconds=seconds)) == told


@pytest.mark.parametrize(("share", "done"), [(-1.0, 0), (0.0, 0), (0.5, 10), (1.0, 20), (7.0, 20)])
def test_bars(share: float, done: int) -> None:
    assert bar(share) == f"[{'#' * done}{'.' * (20 - done)}]"


def test_times_and_lengths_that_a_hand_wrote_are_shown_or_unknown() -> None:
    entry = {
        "fromRevision": BLUE,
        "toRevision": GREEN,
        "end": "Promoted",
        "finishedAt": "9999-12-31T23:59:59-14:00",
        "durationSeconds": 2**62,
        "message": "\x1b[2J",
    }
    body = body_with({"phase": "Ready", "servingRevision": GREEN, "history": [entry]})
    found = history(read(body, ()), wide=True)
    assert "unknown" in found[1]
    assert "1281023894007607h45m" in found[1]
    assert found[1].endswith(" [2J")
    assert "\x1b" not in found[1]


def test_a_duration_of_any_length_is_a_number() -> None:
    assert seconds({"soak": "9" * 400 + "h"}, "soak", 1) == 10**10
    assert seconds({"soak": "999999h"}, "soak", 1) == 999_999 * 3600
