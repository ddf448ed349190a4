"""What the figures of a measurement are, on answers whose times are known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_bench.worker.agreement import agreements, common
from zerolayer_bench.worker.cases import OURS, Answer, Cell, Contender, Sample
from zerolayer_bench.worker.statistics import ceilings, quantile, ratios, rows, speeds, spread

ALONE = Cell(1, 32, 3)
TOGETHER = Cell(8, 32, 3)


def sample(
    engine: str, first: float, gap: float, cell: Cell = ALONE, turn: int = 0, stolen: float = 0.0
) -> Sample:
    answer = Answer((first, first + gap, first + 2 * gap), (1, 2, 3))
    return Sample(Contender(engine, "fp32"), cell, turn, (answer,) * cell.batch, 1.0, 100.0, 0.5, stolen)


def test_one_request() -> None:
    found = speeds([Answer((0.5, 0.6, 0.8, 0.9))])
    assert found.ttft_ms == pytest.approx(500)
    assert found.decode == pytest.approx(3 / 0.4)
    assert found.total == pytest.approx(4 / 0.9)
    assert (found.gap_p50_ms, found.gap_p99_ms) == (pytest.approx(100), pytest.approx(200))


def test_decode_of_many_begins_when_the_last_has_its_first_token() -> None:
    early, late = Answer((0.1, 0.2, 0.3, 0.6)), Answer((0.4, 0.5, 0.6, 1.0))
    found = speeds([early, late])
    assert found.decode == pytest.approx(4 / 0.6)
    assert found.total == pytest.approx(8 / 1.0)
    assert found.gap_p99_ms == pytest.approx(400)
    assert found.ttft_ms == pytest.approx(250)


@pytest.mark.parametrize(
    "answers", [[], [Answer(())], [Answer((0.1,))], [Answer((0.1, 0.2)), Answer((0.1,))]]
)
def test_an_answer_without_a_gap_is_no_measurement(answers: list[Answer]) -> None:
    with pytest.raises(ValueError, match="two tokens"):
        speeds(answers)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (0.5, 5), (0.51, 6), (0.99, 10), (1.0, 10)])
def test_quantile(share: float, expected: float) -> None:
    assert quantile(range(1, 11), share) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_quantile_is_not_exceeded_by_its_share(values: list[float], share: float) -> None:
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert sum(value <= found for value in ordered) >= share * len(ordered)
    assert sum(value < found for value in ordered) <= share * len(ordered)


def test_rounds_become_a_row_with_a_spread() -> None:
    measured = [sample(OURS, first, 0.1, turn=turn) for turn, first in enumerate((0.3, 0.1, 0.2))]
    (row,) = rows(measured)
    assert row.rounds == 3
    assert (row.ttft_ms.least, row.ttft_ms.median, row.ttft_ms.most) == pytest.approx((100, 200, 300))
    assert spread([4.0]).median == 4.0


@pytest.mark.parametrize(("shares", "busy"), [((0.0, 0.04, 0.9), False), ((0.06, 0.9, 0.0), True)])
def test_a_row_is_busy_where_half_of_its_samples_were_disturbed(
    shares: tuple[float, ...], busy: bool
) -> None:
    (row,) = rows([sample(OURS, 0.1, 0.1, turn=turn, stolen=share) for turn, share in enumerate(shares)])
    assert row.busy is busy


def test_each_ratio_is_against_the_peer_that_is_best_in_it() -> None:
    measured = rows(
        [sample(OURS, 0.2, 0.1), sample("quick-start", 0.1, 0.4), sample("quick-decode", 2.0, 0.05)]
    )
    (ratio,) = ratios(measured)
    assert (ratio.decode, ratio.decode_peer) == (pytest.approx(0.5), "quick-decode")
    assert (ratio.ttft, ratio.ttft_peer) == (pytest.approx(2.0), "quick-start")


@pytest.mark.parametrize(
    ("cell", "first", "gap", "holds"),
    [
        (ALONE, 0.1, 0.1, True),
        (ALONE, 0.1, 0.101, False),
        (ALONE, 0.101, 0.1, False),
        (TOGETHER, 0.1, 0.1, False),
        (TOGETHER, 0.05, 0.1, True),
        (TOGETHER, 0.08, 0.086, False),
    ],
)
def test_when_the_promise_holds(cell: Cell, first: float, gap: float, holds: bool) -> None:
    (ratio,) = ratios(rows([sample(OURS, first, gap, cell), sample("peer", 0.1, 0.1, cell)]))
    assert ratio.holds is holds


def test_no_ratio_without_a_peer_or_without_ours() -> None:
    assert ratios(rows([sample(OURS, 0.1, 0.1)])) == []
    assert ratios(rows([sample("peer", 0.1, 0.1)])) == []


def test_the_bound_is_bandwidth_over_weights() -> None:
    assert ceilings(30e9, {"fp32": 500_000_000, "int8": 150_000_000}) == {"fp32": 60, "int8": 200}


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (Answer((), (5, 6, 7)), 3),
        (Answer((), (5, 6, 8)), 2),
        (Answer((), (4, 6, 7)), 0),
        (Answer((), (), "<5><6><7>"), 3),
        (Answer((), (), "<5><6><8>"), 2),
        (Answer((), (), "<4>"), 0),
    ],
)
def test_common_beginning_by_tokens_and_by_text(answer: Answer, tokens: int) -> None:
    reference = Answer((), (5, 6, 7))
    assert common(answer, reference, lambda ids: "".join(f"<{one}>" for one in ids)) == tokens


def test_agreement_is_that_of_the_request_that_parts_first() -> None:
    def of(engine: str, *answers: Answer) -> Sample:
        return Sample(Contender(engine, "fp32"), Cell(2, 32, 2), 0, answers, 1.0, 1.0, 0.0, 0.0)

    reference = of("transformers", Answer((), (1, 2)), Answer((), (3, 4)))
    other = of(OURS, Answer((), (1, 2)), Answer((), (3, 5)))
    found = {one.contender.engine: one.tokens for one in agreements([reference, other], lambda _ids: "")}
    assert found == {"transformers": 2, OURS: 1}
