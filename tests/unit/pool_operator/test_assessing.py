"""Watching canaries: what is counted, what is told, and when."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing.canary_watch import (
    ERRORS_ONLY,
    KEY,
    NEW,
    OLD,
    WORKERS,
    Watch,
    all_of,
    canary,
    record,
    worker,
)
from zerolayer_dev.testing.observed import NOW, deployment, serving, spec
from zerolayer_operator.api.update_status import EVIDENCE_LIMIT, Outcome, Step, UpdateStatus
from zerolayer_operator.assessing import ASIDE_S, TOLD_S, terms_of
from zerolayer_operator.decide.evidence import Histogram, Side
from zerolayer_operator.decide.verdict import Check, Evidence
from zerolayer_operator.decide.wire import wire_time
from zerolayer_operator.observe.state import ObservedGolden


@pytest.fixture
async def watch() -> AsyncIterator[Watch]:
    made = Watch()
    yield made
    await made.assessor.close()


async def turn() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_first_look_is_what_later_ones_are_compared_with(watch: Watch) -> None:
    await watch.look(all_of(1000), canary())
    assert watch.samples() == 0
    assert Evidence.from_text(watch.told(canary()).evidence).intervals == 0
    await watch.look(all_of(1007))
    assert watch.samples() == 7
    await watch.look(all_of(1010))
    assert watch.samples() == 10


async def test_evidence_that_no_status_could_hold_is_not_written(watch: Watch) -> None:
    """A status is refused as a whole, and with it every step of the update."""
    bounds = tuple(0.001 * bound for bound in range(1, 400))
    times = Histogram(bounds, (7,) * (len(bounds) + 1))
    evidence = Evidence(1, Side(9, 0, times, times), Side(9, 0, times, times))
    assert len(evidence.to_text()) > EVIDENCE_LIMIT
    await watch.look(all_of(1), canary())
    watch.assessor._pools[KEY].evidence = evidence
    told = watch.told(canary())
    assert (told.samples, told.evidence) == (9, None)


async def test_only_workers_that_answer_are_asked(watch: Watch) -> None:
    others = (
        worker(OLD, "deleting", gone_by=NOW),
        worker(NEW, "warming", ready_at=None),
        worker(NEW, "none", ip=None),
        worker(spec(drainSeconds=61), "of another revision"),
    )
    await watch.look(all_of(1), canary(pods=(*WORKERS, *others)))
    assert watch.workers.asked[0] == ["b1", "b2", "g1"]


@pytest.mark.parametrize("silent", ["b2", "g1"])
async def test_interval_counts_only_where_every_worker_told_at_both_ends(watch: Watch, silent: str) -> None:
    await watch.look(all_of(0), canary())
    await watch.look({**all_of(10), silent: None})
    assert watch.samples() == 0
    await watch.look(all_of(20))
    assert watch.samples() == 0, "the interval began without one of the workers"
    await watch.look(all_of(25))
    assert watch.samples() == 5


ASKED = ObservedGolden("run", job="uid")
"""A golden set that is being asked."""


async def questions(watch: Watch, soak: UpdateStatus) -> None:
    """The golden set is asked between two looks at a canary: it answers 30 requests meanwhile."""
    await watch.look(all_of(0), canary(soak))
    await watch.look(all_of(4), canary(soak))
    await watch.look(all_of(34), canary(soak, golden=ASKED))
    done = canary(soak, golden=replace(ASKED, ended_at=NOW))
    await watch.look(all_of(35), done)
    await watch.look(all_of(37), done)


async def test_what_is_counted_while_the_golden_set_is_asked_is_left_out(watch: Watch) -> None:
    await questions(watch, record(soak_started_at=wire_time(NOW)))
    assert watch.samples() == 6


async def test_golden_set_supplies_samples_to_a_soak_that_ends_without_enough(watch: Watch) -> None:
    soak = record(soak_started_at=wire_time(NOW))
    await questions(watch, soak)
    watch.now += timedelta(minutes=10)
    await watch.look(all_of(38), canary(soak))
    assert watch.samples() == 38
    await watch.look(all_of(40), canary(soak))
    assert watch.samples() == 40


async def test_golden_set_supplies_none_where_there_are_enough(watch: Watch) -> None:
    soak = record(soak_started_at=wire_time(NOW))
    await questions(watch, soak)
    watch.now += timedelta(minutes=10)
    await watch.look(all_of(37 + 24), canary(soak))
    assert watch.samples() == 30


async def test_canary_is_judged_while_a_golden_set_takes_long(watch: Watch) -> None:
    soak = canary(record(soak_started_at=wire_time(NOW)), golden=ASKED)
    await watch.look(all_of(0), soak)
    await watch.look(all_of(10), soak)
    watch.seconds += ASIDE_S
    await watch.look(all_of(30), soak)
    await watch.look(all_of(45), soak)
    assert watch.samples() == 15


SHORT = {
    "blue": {"deployments": (deployment(OLD, 2, 1), deployment(NEW, 1, 1))},
    "green": {"deployments": (deployment(OLD, 2, 2), deployment(NEW, 2, 1))},
    "old news": {"deployments": (deployment(OLD, 2, 2), deployment(NEW, 1, 1, current=False))},
    "no green": {"deployments": (deployment(OLD, 2, 2),)},
    "asleep": {"deployments": (deployment(OLD, 0, 0), deployment(NEW, 1, 1))},
}


@pytest.mark.parametrize("fields", SHORT.values(), ids=SHORT)
async def test_interval_in_which_a_side_was_short_of_workers_does_not_count(watch: Watch, fields) -> None:
    await watch.look(all_of(0), canary())
    await watch.look(all_of(10), canary(**fields))
    await watch.look(all_of(20), canary())
    assert watch.samples() == 0
    await watch.look(all_of(26))
    assert watch.samples() == 6


async def test_side_that_was_short_between_two_looks_was_short(watch: Watch) -> None:
    """A worker that fell out and came back meanwhile: a reconcile has seen it."""
    await watch.look(all_of(0), canary())
    watch.assessor.assess(canary(**SHORT["blue"]))
    await watch.look(all_of(10), canary())
    assert watch.samples() == 0
    await watch.look(all_of(11))
    assert watch.samples() == 1


async def test_counts_are_told_once_a_minute(watch: Watch) -> None:
    await watch.look(all_of(0), canary())
    first = watch.told(canary())
    await watch.look(all_of(5))
    watch.seconds += TOLD_S - 1
    assert watch.assessor.assess(canary()) == first
    watch.seconds += 1
    assert watch.assessor.assess(canary()) == replace(
        first,
        samples=5,
        message=first.message.replace("0 of", "5 of"),
        checks=watch.told(canary()).checks,
        evidence=watch.told(canary()).evidence,
    )


@pytest.mark.parametrize(("share", "said"), [(50, "it would get 50%"), (None, "none of its workers")])
async def test_canary_without_requests_is_never_found_good(
    watch: Watch, share: int | None, said: str
) -> None:
    """Whatever its workers have counted: a client within the cluster may have asked them."""
    told = watch.assessor.assess(canary(record(weight=0, share=share)))

    assert told is not None
    await turn()
    fresh = watch.assessor.assess(canary(record(weight=0, share=share)))
    assert fresh is not None
    assert (fresh.outcome, fresh.reason) == (Outcome.UNDECIDED, "NoRequests")
    assert said in fresh.message


async def test_verdict_is_told_at_once(watch: Watch) -> None:
    await watch.look(all_of(0), canary())
    assert watch.told(canary()).outcome == Outcome.UNDECIDED
    await watch.look(all_of(30))
    verdict = watch.assessor.assess(canary())

    assert verdict is not None
    assert (verdict.outcome, verdict.reason, verdict.samples) == (Outcome.PASS, "NoWorse", 30)


async def test_another_reason_is_told_at_once(watch: Watch) -> None:
    told = record(reason="Requested", message="a person asked for it", verdict=Outcome.UNDECIDED)
    found = watch.assessor.assess(canary(told))

    assert found is not None
    assert (found.outcome, found.reason) == (Outcome.UNDECIDED, "TooFewSamples")


async def test_operator_that_starts_anew_goes_on_with_the_evidence_in_the_status(watch: Watch) -> None:
    await watch.look(all_of(0), canary())
    await watch.look(all_of(20))
    known = watch.told(canary())
    await watch.assessor.close()

    watch.assessor = watch.start()
    kept = canary(record(evidence=known.evidence, samples=20, reason=known.reason, message=known.message))
    await watch.look(all_of(90), kept)
    assert watch.samples(kept) == 20
    await watch.look(all_of(95))
    assert watch.samples(kept) == 25


@pytest.mark.parametrize("evidence", ["", "{", '{"v":9}', '{"v":1,"n":-1}'])
async def test_evidence_that_cannot_be_read_is_none(watch: Watch, evidence: str) -> None:
    kept = canary(record(evidence=evidence, samples=20))
    await watch.look(all_of(90), kept)
    assert watch.samples(kept) == 0


async def test_another_update_begins_with_nothing(watch: Watch) -> None:
    await watch.look(all_of(0), canary())
    await watch.look(all_of(20))
    again = canary(record(started_at=wire_time(NOW + timedelta(hours=1))))
    await watch.look(all_of(40), again)
    assert watch.samples(again) == 0


@pytest.mark.parametrize("step", [Step.AWAIT_PROMOTION, Step.PROMOTE])
async def test_next_steps_of_the_same_update_go_on_with_it(watch: Watch, step: Step) -> None:
    await watch.look(all_of(0), canary())
    await watch.look(all_of(20), canary(record(step)))
    assert watch.samples(canary(record(step))) == 20


OVER = {
    "paused": {"of": spec(update=ERRORS_ONLY, drainSeconds=60, paused=True)},
    "a spec that can't be read": {"of": None},
    "no update": {"status": serving(OLD)},
    "before": {"update": record(Step.PREPARE)},
    "taken over": {"update": record(Step.RETAIN)},
    "left": {"update": record(Step.ROLL_BACK)},
}


@pytest.mark.parametrize("fields", OVER.values(), ids=OVER)
async def test_nothing_is_watched_where_nothing_is_judged(watch: Watch, fields: dict[str, Any]) -> None:
    await watch.look(all_of(0), canary())
    await turn()
    asked = len(watch.workers.asked)

    assert watch.assessor.assess(canary(**fields)) is None
    watch.workers.answers.put_nowait(all_of(5))
    await turn()
    assert len(watch.workers.asked) == asked
    assert watch.changes.empty()


async def test_pool_that_is_gone_is_watched_no_more(watch: Watch) -> None:
    await watch.look(all_of(0), canary())
    watch.assessor.forget(KEY)
    watch.assessor.forget(KEY)
    watch.workers.answers.put_nowait(all_of(5))
    await turn()
    assert watch.changes.empty()


async def test_look_that_fails_is_logged_and_tried_again(
    watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    await watch.look(all_of(0), canary())
    await watch.look(RuntimeError("a bug"))
    await watch.look(all_of(10))
    assert watch.samples() == 0, "nobody knows what was whole in between"
    await watch.look(all_of(13))

    assert watch.samples() == 3
    (logged,) = caplog.records
    assert (logged.message, logged.levelno) == ("a canary can't be watched", logging.ERROR)
    assert (logged.namespace, logged.pool) == ("default", "pool")  # type: ignore[attr-defined]


async def test_workers_that_give_no_answer_are_no_news_for_the_log(
    watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    await watch.look(dict.fromkeys(("b1", "b2", "g1")), canary())
    assert caplog.records == []


async def test_prometheus_that_fails_does_not_keep_workers_from_being_asked(watch: Watch, caplog) -> None:
    class Failing:
        async def ask(self, *_: object) -> dict[str, Any]:
            raise RuntimeError("a bug")

    watch.assessor._queries = Failing()  # type: ignore[assignment]
    await watch.look(all_of(0), canary())
    await watch.look(all_of(4))
    assert watch.samples() == 4
    assert len(caplog.records) == 2


async def test_close_ends_all_looks(watch: Watch) -> None:
    watch.assessor.assess(canary())
    await turn()
    await watch.assessor.close()

    assert watch.workers.closed
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("canary of")]


TRAFFIC = {Check.ERRORS, Check.FIRST_TOKEN, Check.TOKEN_GAPS}
GOLDEN = {"golden": {"configMap": {"name": "questions"}, "minHitRate": 80}}


@pytest.mark.parametrize(
    ("update", "weight", "intents", "on", "samples"),
    [
        ({}, 10, None, TRAFFIC | {Check.CONSISTENCY}, 500),
        ({}, 10, ["creative"], TRAFFIC, 500),
        ({"checks": {"consistency": False}}, 10, None, TRAFFIC, 500),
        ({"checks": {"latency": False}}, 10, None, {Check.ERRORS, Check.CONSISTENCY}, 500),
        ({"checks": {"errorRate": False}}, 10, ["creative"], {Check.FIRST_TOKEN, Check.TOKEN_GAPS}, 500),
        ({}, 0, ["creative"], TRAFFIC, 500),
        (GOLDEN, 10, ["creative"], TRAFFIC | {Check.GOLDEN_ANSWERS, Check.GOLDEN_SIMILARITY}, 500),
        (GOLDEN, 0, None, {Check.CONSISTENCY, Check.GOLDEN_ANSWERS, Check.GOLDEN_SIMILARITY}, 0),
        (GOLDEN, 0, ["creative"], {Check.GOLDEN_ANSWERS, Check.GOLDEN_SIMILARITY}, 0),
    ],
)
def test_checks_that_are_asked(update, weight: int, intents, on: set[Check], samples: int) -> None:
    asked = {"intents": {"default": intents[0], "allowed": intents}} if intents else {}
    terms = terms_of(spec(update=update, **asked), record(weight=weight))

    assert (terms.on, terms.min_samples) == (frozenset(on), samples)
    assert terms.golden_right == (0.8 if "golden" in update else 0.9)


def test_queries_are_asked_by_name() -> None:
    query = {"name": "refunds", "query": "1", "threshold": "1"}
    terms = terms_of(spec(update={"checks": {"queries": [query]}}), record())
    assert terms.queries == ("refunds",)
