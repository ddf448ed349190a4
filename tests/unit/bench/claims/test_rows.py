"""Each claim's mark from raw numbers."""

from collections.abc import Callable
from typing import Any

import pytest

from zerolayer_bench.claims.rows import CLAIMS
from zerolayer_bench.claims.verdicts import Mark, mark

Records = dict[str, list[dict[str, Any]]]
BY_TITLE = {claim.title: claim for claim in CLAIMS}


def parts(title: str, records: Records) -> dict[str, bool]:
    return {part.what: part.reached for part in BY_TITLE[title].parts(records)}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Memory of the sampling step", Mark.PARTLY),
        ("Time of the sampling step", Mark.PARTLY),
        ("Time to the first token", Mark.PARTLY),
        ("Throughput", Mark.PARTLY),
        ("Even utilisation", Mark.HOLDS),
        ("Deterministic repeats", Mark.PARTLY),
        ("Creative repeats", Mark.HOLDS),
        ("Switch of intent", Mark.HOLDS),
        ("Size of the router", Mark.HOLDS),
        ("Warm-up", Mark.PARTLY),
    ],
)
def test_the_mark_of_each_claim(records: Records, title: str, expected: Mark) -> None:
    assert mark(BY_TITLE[title].parts(records)) is expected


def test_every_claim_is_in_the_table_above() -> None:
    assert len(BY_TITLE) == len(CLAIMS) == 10


def _scale(records: Records, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    for data in records[name]:
        change(data)


def test_a_buffer_of_all_logits_is_seen(records: Records) -> None:
    for data in records["memory"]:
        for cell in data["cells"]:
            cell["fused"] = cell["top_k"]
            cell["largest"] = cell["batch"] * cell["vocab"] + 1
    assert mark(BY_TITLE["Memory of the sampling step"].parts(records)) is Mark.NOT_REPRODUCED


def test_the_smaller_worker_is_seen(records: Records) -> None:
    records["served"][0]["peak_mib"]["fused"] = 824.0
    assert mark(BY_TITLE["Memory of the sampling step"].parts(records)) is Mark.HOLDS


def test_each_baseline_counts(records: Records) -> None:
    assert list(parts("Time of the sampling step", records).values()) == [True, True, False, False]


def test_equal_paths_reproduce_nothing(records: Records) -> None:
    for block in records["served"][0]["blocks"]:
        block["requests"] = records["served"][0]["blocks"][0]["requests"]
    for block in records["utilisation"][0]["blocks"]:
        block["processor"] = block["slots"] = [0.1, 0.9, 0.4, 0.2, 0.7]
    for title in ("Time to the first token", "Throughput", "Even utilisation"):
        assert mark(BY_TITLE[title].parts(records)) is Mark.NOT_REPRODUCED


def test_only_long_prompts_count_for_their_own_figure(records: Records) -> None:
    for block in records["served"][0]["blocks"]:
        for request in block["requests"]:
            if request["long"]:
                request["ttft_ms"] = 500.0
    found = list(parts("Time to the first token", records).values())
    assert found[2] is False


def test_a_block_lasts_until_its_last_answer(records: Records) -> None:
    for block in records["served"][0]["blocks"]:
        if block["path"] == "fused":
            block["requests"][5]["ended"] = 19.0
    assert mark(BY_TITLE["Throughput"].parts(records)) is Mark.NOT_REPRODUCED


def test_one_other_answer_among_thousands_is_told(records: Records) -> None:
    records["repeats"][1] = {"answers": {"short": {"1 2": 599, "1 3": 1}}, "others": 7, "fingerprint": "zl"}
    assert not any(parts("Deterministic repeats", records).values())


def test_starts_are_compared_with_each_other(records: Records) -> None:
    records["repeats"][2] = {"answers": {"short": {"1 3": 600}}, "others": 7, "fingerprint": "zl"}
    found = BY_TITLE["Deterministic repeats"].parts(records)[0].measured
    assert found is not None
    assert found.value == pytest.approx(2 / 3)


def test_one_prompt_that_repeats_itself_is_told(records: Records) -> None:
    records["creative"][0]["prompts"]["p1"]["creative"] = 0.25
    assert list(parts("Creative repeats", records).values()) == [True, False]


def test_a_switch_that_takes_longer_is_seen(records: Records) -> None:
    _scale(
        records,
        "switch",
        lambda data: [r.update(ms=r["ms"] + 0.06) for r in data["requests"] if r["switched"]],  # type: ignore[func-returns-value]
    )
    assert mark(BY_TITLE["Switch of intent"].parts(records)) is Mark.NOT_REPRODUCED


def test_a_router_may_be_32_kib(records: Records) -> None:
    records["router-size"][0]["bytes"] = 32 * 1024
    assert mark(BY_TITLE["Size of the router"].parts(records)) is Mark.HOLDS
    records["router-size"][0]["bytes"] += 1
    assert mark(BY_TITLE["Size of the router"].parts(records)) is Mark.NOT_REPRODUCED


def test_warm_up_that_changes_nothing_is_seen(records: Records) -> None:
    _scale(records, "warm-up", lambda data: data.update(ms=[20.0, 10.0, 10.0]))
    assert mark(BY_TITLE["Warm-up"].parts(records)) is Mark.NOT_REPRODUCED
