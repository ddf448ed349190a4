"""Watching canaries: what is counted, what is told, and when."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing.observed import NOW, deployment, pod, pool, serving, spec
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.update_status import Outcome, Step, UpdateStatus
from zerolayer_operator.assessing import TOLD_S, Assessor, terms_of
from zerolayer_operator.decide.update_facts import Assessment
from zerolayer_operator.decide.verdict import Check, Evidence
from zerolayer_operator.decide.wire import wire_time
from zerolayer_operator.observe.state import ObservedPool
from zerolayer_operator.observe.worker_metrics import WorkerMetricsError
from zerolayer_operator.workqueue import PoolKey

ERRORS_ONLY = {"soak": "10m", "minSamples": 30, "checks": {"latency": False, "consistency": False}}
KEY = PoolKey("default", "pool")
OLD = spec(update=ERRORS_ONLY)
NEW = spec(update=ERRORS_ONLY, drainSeconds=60)
BLUE, GREEN = revision_hash(OLD), revision_hash(NEW)


def record(step: Step = Step.SOAK, **changes: Any) -> UpdateStatus:
    values: dict[str, Any] = {
        "step": step,
        "from_revision": BLUE,
        "to_revision": GREEN,
        "started_at": wire_time(NOW),
        "weight": 10,
    }
    return UpdateStatus(**{**values, **changes})


def worker(of: Any, address: str, **changes: Any) -> Any:
    return pod(of, f"pod-{address}", uid=f"uid-{address}", **{"ip": address, "ready_at": NOW, **changes})


WORKERS = (worker(OLD, "b1"), worker(OLD, "b2"), worker(NEW, "g1"))


def canary(
    update: UpdateStatus | None = None, *, ready: int = 1, green: int = 1, **fields: Any
) -> ObservedPool:
    """A pool with two workers of the revision that serves, and one of a canary."""
    status = serving(OLD).model_copy(update={"update": update or record()})
    sides = (deployment(OLD, 2, 2), deployment(NEW, green, ready))
    return pool(**{"of": NEW, "status": status, "deployments": sides, "pods": WORKERS, **fields})


class Workers:
    """Workers that are asked when the test says so, and tell how many requests they have answered."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[Mapping[str, int | None] | Exception] = asyncio.Queue()
        self.asked: list[list[str]] = []
        self.closed = False

    async def ask(self, addresses: Iterable[str], read: Callable[[str], Any]) -> dict[str, Any]:
        wanted = list(addresses)
        self.asked.append(wanted)
        told = await self.answers.get()
        if isinstance(told, Exception):
            raise told
        return {address: self._tell(told[address], read) for address in wanted}

    @staticmethod
    def _tell(answered: int | None, read: Callable[[str], Any]) -> Any:
        if answered is None:
            return WorkerMetricsError("it gives no answer")
        return read(f'zero_layer_answers_total{{outcome="ok"}} {answered}\n')

    async def close(self) -> None:
        self.closed = True


class Queries:
    """A Prometheus that nobody asks for anything."""

    async def ask(self, *_: object) -> dict[str, Any]:
        return {}


class Watch:
    """An assessor with its surroundings."""

    def __init__(self) -> None:
        self.workers = Workers()
        self.seconds = 0.0
        self.changes: asyncio.Queue[PoolKey] = asyncio.Queue()
        self.assessor = self.start()

    def start(self) -> Assessor:
        """An operator that starts anew."""
        self.workers.answers = asyncio.Queue()
        return Assessor(
            self.workers,  # type: ignore[arg-type]
            Queries(),  # type: ignore[arg-type]
            self.changes.put_nowait,
            pace_s=0,
            clock=lambda: self.seconds,
        )

    async def look(
        self, told: Mapping[str, int | None] | Exception, seen: ObservedPool | None = None
    ) -> None:
        """Let workers be asked once, after a reconcile of the pool as it is seen."""
        if seen is not None:
            self.assessor.assess(seen)
        self.workers.answers.put_nowait(told)
        assert await asyncio.wait_for(self.changes.get(), 10) == KEY

    def told(self, seen: ObservedPool) -> Assessment:
        """What is told once the time for it has come."""
        self.seconds += TOLD_S
        found = self.assessor.assess(seen)
        assert found is not None
        return found

    def samples(self, seen: ObservedPool | None = None) -> int:
        return self.told(seen or canary()).samples


@pytest.fixture
async def watch() -> AsyncIterator[Watch]:
    made = Watch()
    yield made
    await made.assessor.close()


def all_of(answered: int) -> dict[str, int | None]:
    """Every worker has answered so many requests."""
    return dict.fromkeys(("b1", "b2", "g1"), answered)


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
