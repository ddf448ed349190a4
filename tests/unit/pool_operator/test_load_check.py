"""Which of Prometheus' figures are trusted."""

import math
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.prometheus_answers import FLAT, Figure, flat, result
from zerolayer_operator.observe.load import SPAN_S, STEP_S, Counted, LoadSample, ObservedLoad
from zerolayer_operator.observe.load_check import checked
from zerolayer_operator.observe.load_query import FIGURES, LoadSeries, read_series
from zerolayer_operator.observe.load_source import NO_WORKER, LoadTarget, Worker

END = 1_800_000_000
NOW = END + 5.0
LONG_AGO = NOW - 4000


def target(*ready_since: float | None) -> LoadTarget:
    workers = (Worker(f"w{number}", f"ip{number}", since) for number, since in enumerate(ready_since))
    return LoadTarget("ns", "pool", "rev", tuple(workers))


TWO = target(LONG_AGO, LONG_AGO)


def own(
    busy: float = 4.0, arrivals: float = 1.0, *, slots: float | None = 8.0, span_s: int = 300
) -> ObservedLoad:
    """What the operator would know of a load that has been flat for a while."""
    counted = Counted(60, arrivals * 60, busy * 60, 0, arrivals * 60, busy * 60)
    samples = tuple(LoadSample(at, counted, 0.5, 2) for at in range(END - span_s, END + 1, STEP_S))
    return ObservedLoad(samples, slots)


def prometheus(of: Figure = flat, end: int = END) -> LoadSeries:
    return read_series(result(end - SPAN_S, end, of), end - SPAN_S, end)


def lately(seconds: float, **figures: Any) -> Figure:
    """The flat load, with other figures in the last so many seconds."""
    return lambda figure, at: figures.get(figure, FLAT[figure]) if at > END - seconds else FLAT[figure]


def check(of: Figure = flat, workers: LoadTarget = TWO, known: ObservedLoad | None = None) -> ObservedLoad:
    return checked(prometheus(of), workers, own() if known is None else known, NOW)


def test_good_figures_are_the_load() -> None:
    load = check()
    assert load.unknown is None
    assert load.slots_per_pod == 8
    assert len(load.samples) == SPAN_S // STEP_S + 1
    newest = load.samples[-1]
    assert newest == LoadSample(
        float(END), Counted(60, arrivals=60, busy_s=240, queued_s=0, finished=60, service_s=240), 0.5, 2
    )


@pytest.mark.parametrize(
    ("of", "said"),
    [
        pytest.param(lately(15, busy="NaN"), "no number, or an impossible one, for busy", id="NaN"),
        pytest.param(lately(15, **dict.fromkeys(FIGURES, "NaN")), "no number", id="NaN for all"),
        pytest.param(lately(15, arrivals="+Inf"), "for arrivals", id="infinite"),
        pytest.param(lately(15, queued=-0.5), "for queued", id="negative"),
        pytest.param(lately(15, share="1e20"), "for share", id="absurd"),
        pytest.param(lately(15, busy=18), "more busy slots than there are", id="more than all slots"),
        pytest.param(lately(15, share=2.11), "a utilization above 100 %", id="utilization"),
        pytest.param(lately(75, slots=0.08), "more busy slots than there are", id="slots"),
        pytest.param(lately(15, slots=0), "workers that can run no request", id="no slots"),
        pytest.param(lately(15, slots=5e-324), "workers that can run no request", id="hardly a slot"),
        pytest.param(
            lately(30, **dict.fromkeys(FIGURES)), "that are newer than 45 s", id="gone"
        ),
        pytest.param(lately(30, service=None), "that are newer than 45 s", id="one gone"),
        pytest.param(lately(1e9, **dict.fromkeys(FIGURES)), "no figures of the pool's workers", id="never"),
        pytest.param(lately(30, pods=0), "that are newer than 45 s", id="of nobody"),
        pytest.param(lately(75, rated=1), "no figures of some of the pool's workers", id="one worker's only"),
        pytest.param(
            lately(15, busy=0.04, arrivals=0.01, service=0.04, finished=0.01),
            "for busy slots is over 3 times less",
            id="100 times less",
        ),
        pytest.param(lately(15, busy=14), "for busy slots is over 3 times more", id="more than 3 times more"),
        pytest.param(
            lately(15, arrivals=100, finished=100),
            "for requests per second is over 3 times more",
            id="requests",
        ),
        pytest.param(lately(75, slots=800), "slots per worker is over 3 times", id="100 times the slots"),
    ],
)  # fmt: skip
def test_bad_figures_make_the_load_unknown(of: Figure, said: str) -> None:
    load = check(of)
    assert load.unknown is not None
    assert said in load.unknown
    assert "check that it" in load.unknown


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(lately(15, busy=15.9, share=2.0), id="full"),
        pytest.param(lately(15, busy=17, share=2.09), id="full, with jitter"),
        pytest.param(lately(15, **dict.fromkeys(FIGURES)), id="one sample missing"),
        pytest.param(lately(15, busy=1.4, arrivals=0.4), id="less, within the factor"),
        pytest.param(lately(15, ready=None), id="all on their way out"),
        pytest.param(lately(15, rated=1), id="one scrape of one worker missing"),
    ],
)
def test_unusual_figures_are_still_trusted(of: Figure) -> None:
    assert check(of, known=ObservedLoad()).unknown is None


def test_figures_that_were_nonsense_once_are_a_gap() -> None:
    load = check(lambda figure, at: "NaN" if figure == "busy" and at == END - 600 else FLAT[figure])
    gaps = [sample.at for sample in load.samples if sample.counted is None]
    assert gaps == [END - 600]
    assert load.unknown is None


def test_the_time_before_the_pool_is_no_load() -> None:
    load = check(lambda figure, at: FLAT[figure] if at >= END - 600 else None)
    assert [load.samples[0].at, load.samples[-1].at] == [END - 600, END]
    assert load.unknown is None


def test_a_pool_at_zero_is_unknown_whatever_prometheus_says() -> None:
    for workers in (target(), target(None)):
        load = check(workers=workers)
        assert load.unknown == NO_WORKER


def test_workers_that_have_just_come_are_waited_for() -> None:
    nothing = lately(1e9, **dict.fromkeys(FIGURES))
    load = check(nothing, target(NOW - 60))
    assert load.unknown is not None
    assert "just become ready; wait a minute" in load.unknown
    two_of_four = target(LONG_AGO, LONG_AGO, NOW - 60, NOW - 30)
    assert check(workers=two_of_four).unknown is None


def test_workers_that_have_gone_were_there() -> None:
    """At the end of the minute there is one worker, in most of it there were two: its sums are of both."""
    load = check(lately(15, pods=1, ready=1, rated=1, busy=15.5, share=1.9), target(LONG_AGO), own(busy=15))
    assert load.unknown is None
    assert load.samples[-1].busy_share == 1.0
    assert load.samples[-1].ready == 1


def test_figures_that_were_not_asked_for_lately_are_old() -> None:
    load = checked(prometheus(), TWO, own(), END + 46.0)
    assert load.unknown is not None
    assert "has not asked Prometheus" in load.unknown
    assert checked(prometheus(), TWO, own(), END + 44.0).unknown is None


NONE = own(busy=0.0, arrivals=0.0)


@pytest.mark.parametrize(
    ("known", "of", "trusted"),
    [
        pytest.param(NONE, lately(15, busy=0.29, arrivals=0.09), True, id="both small"),
        pytest.param(NONE, lately(15, busy=0.31, arrivals=0.0), False, id="one is not"),
        pytest.param(own(busy=12.1), flat, False, id="more than the factor"),
        pytest.param(own(busy=11.9), flat, True, id="less than the factor"),
        pytest.param(own(slots=None), flat, True, id="slots not known"),
    ],
)  # fmt: skip
def test_small_figures_contradict_nothing(known: ObservedLoad, of: Figure, trusted: bool) -> None:
    assert (check(of, known=known).unknown is None) is trusted


def test_where_the_workers_contradict_their_own_figures_count() -> None:
    workers = own()
    load = check(lately(1e9, arrivals=100, busy=15, finished=100), known=workers)
    assert load.unknown is not None
    assert load.samples == workers.samples


def test_a_burst_in_between_is_no_contradiction() -> None:
    """The two scrape up to half a minute apart: any minute that ends within that time will do."""
    busy = {END - 30: 0.1, END - 15: 4.0}
    samples = tuple(
        LoadSample(at, Counted(60, 60 * b, 240 * b / 4, 0, 60 * b, 240 * b / 4), 0.1, 2)
        for at in range(END - 300, END + 1, STEP_S)
        for b in [busy.get(at, 16.0)]
    )
    for figure in (0.2, 4.0, 15.0):
        changed = lately(15, busy=figure, arrivals=figure, finished=figure, service=figure)
        assert check(changed, known=ObservedLoad(samples, 8)).unknown is None


def test_of_workers_that_have_just_come_the_operator_knows_sooner() -> None:
    known = own(busy=14.0, arrivals=3.5)
    less = check(workers=TWO, known=known).unknown
    assert less is not None
    assert "3 times less" in less
    assert check(workers=target(LONG_AGO, NOW - 60), known=known).unknown is None
    more = check(lately(15, busy=14), workers=target(LONG_AGO, NOW - 60)).unknown
    assert more is not None
    assert "3 times more" in more


def test_without_the_workers_word_prometheus_counts_for_a_while() -> None:
    silent = "worker w0 does not tell its load: it answers 500; check what answers there"
    young, old = (
        ObservedLoad(tuple(LoadSample(float(at)) for at in range(END - span, END + 1, STEP_S)), None, silent)
        for span in (90, 180)
    )
    assert check(known=ObservedLoad(unknown="just begun")).unknown is None
    assert check(known=young).unknown is None
    assert check(known=old).unknown == f"nothing confirms Prometheus' figures: {silent}"


GOOD = prometheus()
ODD = st.sampled_from([None, math.inf, -1.0, 0.0, 1e-300, 1e15, 1e300]) | st.floats()


@given(
    st.dictionaries(st.tuples(st.sampled_from(FIGURES), st.integers(0, 8)), ODD, max_size=30),
    st.lists(st.none() | st.floats(NOW - 200, NOW + 200), max_size=4),
    st.sampled_from([ObservedLoad(), own(), own(busy=0.0, slots=None)]),
    st.floats(END - 1000, END + 1000),
)
def test_any_series_is_judged(
    odd: dict[tuple[str, int], Any], ready: list[float | None], known: ObservedLoad, now: float
) -> None:
    figures = {figure: array("d", column) for figure, column in GOOD.figures.items()}
    for (figure, back), value in odd.items():
        figures[figure][-1 - back] = math.nan if value is None else value
    load = checked(LoadSeries(GOOD.first, figures), target(*ready), known, now)
    assert load.unknown != ""
    for sample in load.samples:
        assert sample.busy_share is None or 0 <= sample.busy_share <= 1
        if sample.counted is not None and sample.at > END - 120:
            assert sample.counted.busy_s <= 1e18
    if load.unknown is None:
        assert load.samples[-1].counted is not None
        assert load.samples[-1].at >= END - STEP_S
