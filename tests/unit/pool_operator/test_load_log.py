"""The operator's own account of a pool's load, scrape by scrape."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.worker_load import SteadyWorker
from zerolayer_operator.observe.load import MEAN_S, SPAN_S, STALE_S, STEP_S, ObservedLoad, Requests
from zerolayer_operator.observe.load_log import Answer, LoadLog
from zerolayer_operator.observe.load_source import NO_WORKER, LoadTarget, Worker
from zerolayer_operator.observe.worker_metrics import WorkerCounters, WorkerMetricsError

START = 1_800_000_000.0
SILENT = WorkerMetricsError("it gives no answer within 3 s; let the operator reach it")


def target(*names: str, ready_since: float | None = START - 1000) -> LoadTarget:
    return LoadTarget("ns", "pool", "rev", tuple(Worker(name, f"ip-{name}", ready_since) for name in names))


def answers(workers: Mapping[str, SteadyWorker | WorkerMetricsError], now: float) -> dict[str, Answer]:
    return {
        f"ip-{name}": WorkerCounters(**worker.counted(now), slots=worker.slots)
        if isinstance(worker, SteadyWorker)
        else worker
        for name, worker in workers.items()
    }


def steady(**values: float) -> SteadyWorker:
    return SteadyWorker(**{"began": START - 500, **values})  # type: ignore[arg-type]


def scrape(
    log: LoadLog,
    of: LoadTarget,
    workers: Mapping[str, SteadyWorker | WorkerMetricsError],
    instants: Iterable[float],
) -> ObservedLoad:
    now = START
    for now in instants:
        log.add(now, of, answers(workers, now))
    return load_of(log, now, of)


def load_of(log: LoadLog, now: float, of: LoadTarget) -> ObservedLoad:
    return log.load(now, of, SPAN_S)


def every(step: float, count: int, start: float = START) -> list[float]:
    return [start + step * number for number in range(count)]


def test_a_minute_of_two_workers() -> None:
    workers = {"a": steady(), "b": steady(arrivals=1.0, queued=0.5)}
    load = scrape(LoadLog(), target("a", "b"), workers, every(STEP_S, 6))
    newest = load.samples[-1]
    assert newest.counted is not None
    per_second = newest.counted.scaled(1)
    assert newest.counted.seconds == MEAN_S
    assert per_second.arrivals == pytest.approx(1.5)
    assert per_second.busy_s == pytest.approx(2 + 4)
    assert per_second.queued_s == pytest.approx(0.5)
    assert per_second.service_s / per_second.finished == pytest.approx(4)
    assert newest.busy_share == pytest.approx((2 + 4) / 16)
    assert (newest.at, newest.ready, load.slots_per_pod, load.unknown) == (START + 75, 2, 8, None)


def test_nothing_is_known_before_the_first_minute() -> None:
    log, workers, of = LoadLog(), {"a": steady()}, target("a")
    before = load_of(log, START, of)
    assert before.pending, "a new operator leaves the autoscaler alone until it has asked"
    assert "less than a minute" in str(before.unknown)
    for now in every(STEP_S, 3):
        log.add(now, of, answers(workers, now))
        assert "less than a minute" in str(load_of(log, now, of).unknown)
        assert load_of(log, now, of).samples[-1].counted is None
    assert scrape(log, of, workers, every(STEP_S, 3, START + 45)).unknown is None


def test_a_pool_without_workers_is_not_idle_but_unknown() -> None:
    log = LoadLog()
    load = scrape(log, target(), {}, every(STEP_S, 20))
    assert load.unknown == NO_WORKER
    assert {sample.counted for sample in load.samples} == {None}
    leaving = target("a", ready_since=None)
    assert scrape(log, leaving, {"a": steady()}, every(STEP_S, 8, START + 300)).unknown == NO_WORKER


def test_a_worker_that_leaves_still_counts() -> None:
    of = LoadTarget("ns", "pool", "rev", (*target("a").workers, *target("b", ready_since=None).workers))
    load = scrape(LoadLog(), of, {"a": steady(arrivals=0.0), "b": steady()}, every(STEP_S, 6))
    assert load.samples[-1].counted is not None
    assert load.samples[-1].counted.scaled(1).busy_s == pytest.approx(2)
    assert load.samples[-1].ready == 1


def test_a_worker_that_leaves_may_be_silent() -> None:
    of = LoadTarget("ns", "pool", "rev", (*target("a").workers, *target("b", ready_since=None).workers))
    assert scrape(LoadLog(), of, {"a": steady(), "b": SILENT}, every(STEP_S, 20)).unknown is None


def test_a_worker_in_anothers_place_begins_from_nothing() -> None:
    """What it counted before it was first seen is no growth of the pool."""
    log = LoadLog()
    scrape(log, target("a"), {"a": steady()}, every(STEP_S, 6))
    load = scrape(
        log, target("b", ready_since=START + 80), {"b": steady(began=0.0)}, every(STEP_S, 8, START + 90)
    )
    assert load.unknown is None
    assert [sample.counted.scaled(1).busy_s for sample in load.samples if sample.counted][-1] == (
        pytest.approx(2)
    )
    assert max(s.counted.scaled(1).busy_s for s in load.samples if s.counted) == pytest.approx(2)


def test_a_worker_that_began_anew_loses_nothing_but_what_it_had_not_told() -> None:
    log = LoadLog()
    scrape(log, target("a"), {"a": steady()}, every(STEP_S, 6))
    anew = steady(began=START + 80)
    load = scrape(log, target("a"), {"a": anew}, every(STEP_S, 6, START + 90))
    rates = [sample.counted.scaled(1).busy_s for sample in load.samples if sample.counted]
    assert load.unknown is None
    assert rates[-1] == pytest.approx(2)
    assert all(0 < rate <= 2 + 1e-6 for rate in rates)
    assert min(rates) == pytest.approx(2 * 55 / 60)


def test_one_missed_scrape_is_made_up_for() -> None:
    log, of = LoadLog(), target("a", "b")
    workers = {"a": steady(), "b": steady()}
    scrape(log, of, workers, every(STEP_S, 6))
    missed = scrape(log, of, {"a": steady(), "b": SILENT}, [START + 90])
    assert missed.unknown is None
    load = scrape(log, of, workers, every(STEP_S, 3, START + 105))
    newest = load.samples[-1]
    assert newest.counted is not None
    assert newest.counted.scaled(1).busy_s == pytest.approx(4)
    assert newest.busy_share == pytest.approx(0.25)


def test_a_silent_worker_makes_the_load_unknown() -> None:
    log, of = LoadLog(), target("a", "b")
    scrape(log, of, {"a": steady(), "b": steady()}, every(STEP_S, 6))
    load = scrape(log, of, {"a": steady(), "b": SILENT}, every(STEP_S, 4, START + 90))
    assert load.unknown == f"worker b does not tell its load: {SILENT}"
    assert load.samples[-1].counted is None
    back = scrape(log, of, {"a": steady(), "b": steady()}, every(STEP_S, 7, START + 150))
    assert back.unknown is None
    rates = [sample.counted.scaled(1).busy_s for sample in back.samples if sample.counted]
    assert rates[-1] == pytest.approx(4)
    assert max(rates) == pytest.approx(4)


def test_a_worker_that_has_just_come_may_be_silent() -> None:
    log = LoadLog()
    scrape(log, target("a"), {"a": steady()}, every(STEP_S, 6))
    new = Worker("b", "ip-b", START + 80)
    of = LoadTarget("ns", "pool", "rev", (*target("a").workers, new))
    assert scrape(log, of, {"a": steady(), "b": SILENT}, every(STEP_S, 3, START + 90)).unknown is None
    assert "worker b" in str(scrape(log, of, {"a": steady(), "b": SILENT}, [START + 135]).unknown)


def test_figures_that_cannot_be_are_told() -> None:
    impossible = {"a": replace(steady(), slots=1, arrivals=1.0)}
    log, of = LoadLog(), target("a")
    for now in every(STEP_S, 6):
        (given,) = answers(impossible, now).values()
        assert isinstance(given, WorkerCounters)
        log.add(now, of, {"ip-a": replace(given, busy_s=given.busy_s * 3)})
    assert (
        load_of(log, START + 75, of).unknown
        == "the workers tell more busy slots than there are; restart them"
    )
    assert load_of(log, START + 75, of).samples[-1].counted is None


def test_what_was_told_long_ago_says_nothing_about_now() -> None:
    log, of = LoadLog(), target("a")
    scrape(log, of, {"a": steady()}, every(STEP_S, 6))
    assert load_of(log, START + 75 + STALE_S, of).unknown is None
    assert "has not asked" in str(load_of(log, START + 75 + STALE_S + 1, of).unknown)


@pytest.mark.parametrize("jump", [-3600.0, -15.0, 0.0, 600.0])
def test_a_clock_that_is_set_makes_no_load(jump: float) -> None:
    log, of = LoadLog(), target("a", ready_since=START - 10_000)
    scrape(log, of, {"a": steady()}, every(STEP_S, 6))
    moved = steady(began=START - 500 + jump)
    instants = every(STEP_S, 7, START + 75 + jump)
    rates = []
    for now in instants:
        log.add(now, of, answers({"a": moved}, now))
        rates += [s.counted.scaled(1).busy_s for s in load_of(log, now, of).samples if s.counted]
    assert rates
    assert all(rate == pytest.approx(2) for rate in rates)
    assert load_of(log, instants[-1], of).unknown is None


def test_an_hour_is_kept_and_no_more() -> None:
    log, of = LoadLog(), target("a")
    load = scrape(log, of, {"a": steady()}, every(STEP_S, 1000))
    assert len(load.samples) == SPAN_S // STEP_S + 1
    assert all(sample.counted is not None for sample in load.samples)
    assert len(log._rows) * log._rows.itemsize < 32_000


INSTANTS = st.lists(st.floats(-1, 120, allow_nan=False), min_size=1, max_size=40)
BOUNDS = st.sampled_from([0.5, 1.0, 2.0, float("inf")])
FIGURES = st.floats(0, 1e15)


@given(st.data())
def test_whatever_workers_say_is_borne(data: st.DataObject) -> None:
    log, now = LoadLog(), START
    for step in data.draw(INSTANTS):
        now += step
        names = data.draw(st.sets(st.sampled_from("abc")))
        of = LoadTarget(
            "ns",
            "pool",
            "rev",
            tuple(
                Worker(name, f"ip-{name}", data.draw(st.none() | st.floats(START - 100, START + 100)))
                for name in sorted(names)
            ),
        )
        said: dict[str, Answer] = {
            worker.ip: data.draw(
                st.just(SILENT)
                | st.builds(
                    WorkerCounters, *[FIGURES] * 7, st.none(), st.none() | st.dictionaries(BOUNDS, FIGURES)
                )
            )
            for worker in of.workers
        }
        log.add(now, of, said)
        log.waits(now, replace(of, first_tokens=True))
        load = load_of(log, now, of)
        assert load.unknown != ""
        for sample in load.samples:
            assert sample.busy_share is None or 0 <= sample.busy_share <= 1
            assert (sample.counted is None) == (sample.busy_share is None)
            assert sample.counted is None or min(sample.counted.busy_s, sample.counted.arrivals) >= 0
        if load.unknown is None:
            assert load.samples[-1].counted is not None


def told(at: float, requests: Requests | None) -> WorkerCounters:
    return WorkerCounters(**steady().counted(at), slots=8, requests=requests)


def test_requests_of_the_last_answer_until_it_is_too_old() -> None:
    log, of = LoadLog(), target("a", "b", "silent")
    assert log.requests(START) is None
    log.add(START, of, {"ip-a": told(START, Requests(1, 0)), "ip-b": told(START, None), "ip-silent": SILENT})
    assert log.requests(START) == {"a": Requests(1, 0)}
    log.add(START + STEP_S, of, {"ip-a": SILENT, "ip-b": told(START + STEP_S, Requests(2, 3))})
    assert log.requests(START + STALE_S) == {"a": Requests(1, 0), "b": Requests(2, 3)}
    assert log.requests(START + STALE_S + 1) == {"b": Requests(2, 3)}
