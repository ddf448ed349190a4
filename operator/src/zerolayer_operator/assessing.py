"""Watches canaries beside the revisions that serve, and judges them: the I/O around `decide.verdict`."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from zerolayer_operator.api.serving import Intent
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.update_status import (
    EVIDENCE_LIMIT,
    CheckResult,
    CheckStatus,
    Outcome,
    Step,
    UpdateStatus,
)
from zerolayer_operator.decide.canary_sides import Counted, interval, repeats
from zerolayer_operator.decide.evidence import Interval
from zerolayer_operator.decide.golden import golden_result, is_asking
from zerolayer_operator.decide.query_checks import Variables, asked, compared
from zerolayer_operator.decide.update_facts import Assessment, same_update
from zerolayer_operator.decide.verdict import Check, Evidence, Terms, Verdict, judge, too_thin
from zerolayer_operator.decide.verdict_terms import TRAFFIC, Reason
from zerolayer_operator.observe.access import timestamp
from zerolayer_operator.observe.answered import QueryAnswer
from zerolayer_operator.observe.answers import read_answers
from zerolayer_operator.observe.query_checks import QueryChecks
from zerolayer_operator.observe.scrape import Scraper
from zerolayer_operator.observe.state import ObservedPod, ObservedPool
from zerolayer_operator.observe.worker_metrics import WorkerMetricsError
from zerolayer_operator.workqueue import PoolKey

log = logging.getLogger(__name__)

PACE_S: Final = 15.0
"""Seconds from one look at a canary to the next."""

TOLD_S: Final = 60.0
"""Seconds between two writes of a status in which nothing but counts differ."""

ASIDE_S: Final = 300.0
"""Seconds for which what is counted while the golden set is asked is left out at most.

A canary is not to go unjudged for long because of a set that takes hours, or whose pod finds no node.
"""

_JUDGED: Final = frozenset({Step.SOAK, Step.AWAIT_PROMOTION, Step.PROMOTE})


@dataclass(slots=True)
class _Watched:
    """A pool with a canary, as of its last reconcile, and what is known of it.

    Attributes:
        told_at: When the counts in its status were renewed last, in seconds of a clock that goes forward.
        answers: What Prometheus answered to the user's own queries last.
        counted: What each worker had counted when it was asked last, by its UID; empty where one was missing
            then.
        missed: Whether one has been missing since then.
        golden: Whether the golden set has been asked since then.
        golden_at: When it was first, in seconds of that clock.
        aside: What was counted meanwhile, for a soak that ends short of samples. An operator that starts anew
            has none of it.
    """

    pool: ObservedPool
    spec: PoolSpec
    record: UpdateStatus
    evidence: Evidence
    told: Assessment
    told_at: float
    answers: Mapping[str, QueryAnswer] = field(default_factory=dict[str, QueryAnswer])
    counted: dict[str, Counted] = field(default_factory=dict[str, Counted])
    missed: bool = False
    golden: bool = False
    golden_at: float | None = None
    aside: list[Interval] = field(default_factory=list[Interval])
    task: asyncio.Task[None] | None = None


class Assessor:
    """Judges canaries.

    A pool is followed from when its canary gets requests until it is decided on. Its workers are asked every
    15 s; a reconcile is asked for each time, since what comes next may depend on the time alone.

    Args:
        scraper: Asks the workers.
        queries: Asks Prometheus what users' own checks ask for.
        changed: Asks for a pool to be reconciled.
        pace_s: Seconds from one look to the next.
        clock: Seconds of a clock that only goes forward.
        today: What time it is.
    """

    def __init__(
        self,
        scraper: Scraper,
        queries: QueryChecks,
        changed: Callable[[PoolKey], None],
        *,
        pace_s: float = PACE_S,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._scraper = scraper
        self._queries = queries
        self._changed = changed
        self._pace_s = pace_s
        self._clock = clock
        self._today = today
        self._pools: dict[PoolKey, _Watched] = {}

    def assess(self, pool: ObservedPool) -> Assessment | None:
        """What is known of a pool's canary; ``None`` where there is none to be judged."""
        key, record = PoolKey(pool.namespace, pool.name), pool.status.update
        if pool.spec is None or pool.spec.paused or record is None or record.step not in _JUDGED:
            self.forget(key)
            return None
        watched = self._follow(key, pool, pool.spec, record)
        fresh = _assessment(watched)
        decided = (fresh.outcome, fresh.reason) != (watched.told.outcome, watched.told.reason)
        if decided or self._clock() - watched.told_at >= TOLD_S:
            watched.told, watched.told_at = fresh, self._clock()
        return watched.told

    def forget(self, key: PoolKey) -> None:
        """Watches a pool no more; nothing happens if it was not watched."""
        watched = self._pools.pop(key, None)
        if watched is not None and watched.task is not None:
            watched.task.cancel()

    async def close(self) -> None:
        """Watches no pool any more."""
        tasks = [item.task for item in self._pools.values() if item.task is not None]
        for key in list(self._pools):
            self.forget(key)
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._scraper.close()

    def _follow(self, key: PoolKey, pool: ObservedPool, spec: PoolSpec, record: UpdateStatus) -> _Watched:
        watched = self._pools.get(key)
        if watched is None or not same_update(watched.record, record):
            self.forget(key)
            told = _as_told(record)
            evidence = Evidence.from_text(record.evidence)
            watched = _Watched(pool, spec, record, evidence, told, self._clock())
            self._pools[key] = watched
            watched.task = asyncio.create_task(self._keep_looking(key, watched), name=f"canary of {key}")
        watched.pool, watched.spec, watched.record = pool, spec, record
        # Both may be whole again by the next look.
        watched.missed |= _is_short(watched)
        watched.golden |= self._is_asked(watched)
        return watched

    async def _keep_looking(self, key: PoolKey, watched: _Watched) -> None:
        while True:
            try:
                await self._look(watched)
            except Exception:
                # A task that ended would leave its canary unjudged for good.
                log.exception(
                    "a canary can't be watched", extra={"namespace": key.namespace, "pool": key.name}
                )
            self._changed(key)
            await asyncio.sleep(self._pace_s)

    async def _look(self, watched: _Watched) -> None:
        # First: however Prometheus fares, workers tell what they have counted.
        await self._ask_workers(watched)
        await self._ask_prometheus(watched)

    async def _ask_prometheus(self, watched: _Watched) -> None:
        checks, record, pool = watched.spec.update.checks.queries, watched.record, watched.pool
        variables = Variables(record.from_revision, record.to_revision, pool.name, pool.namespace)
        scaling = watched.spec.autoscaling
        named = scaling.prometheus if scaling is not None else None
        watched.answers = await self._queries.ask(pool.namespace, named, asked(checks, variables))

    async def _ask_workers(self, watched: _Watched) -> None:
        """Ask all workers of both revisions.

        An interval counts only where none was missing, neither at its ends nor in between.
        """
        pool = watched.pool
        blue, green = watched.record.from_revision, watched.record.to_revision
        pods = [pod for pod in pool.pods if pod.revision in {blue, green} and _answers(pod)]
        before, watched.counted = watched.counted, {}
        found = await self._scraper.ask((pod.ip or "" for pod in pods), read_answers)
        counted: dict[str, Counted] = {}
        for pod in pods:
            told = found[pod.ip or ""]
            if not isinstance(told, WorkerMetricsError):
                counted[pod.uid] = Counted(pod.revision, told)
        watched.evidence = watched.evidence.noting(*repeats(counted, green))
        missed, watched.missed = watched.missed, False
        golden, watched.golden = watched.golden, self._is_asked(watched)
        if len(counted) == len(pods) and not _is_short(watched):
            watched.counted = counted
            if before and not missed:
                self._add(watched, interval(before, counted, blue=blue, green=green), golden=golden)

    def _is_asked(self, watched: _Watched) -> bool:
        """Whether the golden set is asked, as load of its own kind that does not last."""
        if not is_asking(watched.pool.golden):
            return False
        if watched.golden_at is None:
            watched.golden_at = self._clock()
        return self._clock() - watched.golden_at < ASIDE_S

    def _add(self, watched: _Watched, seen: Interval, *, golden: bool) -> None:
        """Add what both sides counted to the evidence, or put it aside where the golden set was asked."""
        terms = terms_of(watched.spec, watched.record)
        if golden:
            watched.aside.append(seen)
        else:
            watched.evidence = watched.evidence.add(seen, terms)
        began = timestamp(watched.record.soak_started_at)
        soaked_s = (self._today() - began).total_seconds() if began is not None else 0.0
        if too_thin(terms, watched.evidence, soaked_s, watched.spec.update.soak_s):
            aside, watched.aside = watched.aside, []
            for item in aside:
                watched.evidence = watched.evidence.add(item, terms)


def terms_of(spec: PoolSpec, record: UpdateStatus) -> Terms:
    """What the verdict on a pool's canary goes by.

    A canary without requests of users is judged by the golden set alone, where there is one.
    """
    checks, update = spec.update.checks, spec.update
    on: set[Check] = set()
    if record.weight or update.golden is None:
        on |= {Check.ERRORS} if checks.error_rate else set()
        on |= {Check.FIRST_TOKEN, Check.TOKEN_GAPS} if checks.latency else set()
    if checks.consistency and Intent.DETERMINISTIC in spec.intents.allowed:
        # Without requests of users too: the golden set's questions are asked twice.
        on.add(Check.CONSISTENCY)
    if update.golden is not None:
        on |= {Check.GOLDEN_ANSWERS, Check.GOLDEN_SIMILARITY}
    judged_by_golden = update.golden is not None and not on & TRAFFIC
    return Terms(
        min_samples=0 if judged_by_golden else update.min_samples,
        on=frozenset(on),
        queries=tuple(query.name for query in checks.queries),
        golden_right=update.golden.min_hit_rate / 100 if update.golden is not None else Terms().golden_right,
    )


def _assessment(watched: _Watched) -> Assessment:
    if not watched.record.weight and watched.spec.update.golden is None:
        return _unasked(watched)
    queries = tuple(compared(watched.spec.update.checks.queries, watched.answers))
    golden = golden_result(watched.pool.golden)
    verdict = judge(watched.evidence, terms_of(watched.spec, watched.record), golden, queries)
    return replace(assessment_of(verdict), evidence=_kept(watched.evidence))


def _kept(evidence: Evidence) -> str | None:
    """The evidence for a status, which would be refused as a whole with the text of hundreds of buckets."""
    text = evidence.to_text()
    return text if len(text) <= EVIDENCE_LIMIT else None


def _unasked(watched: _Watched) -> Assessment:
    """What can be said of a canary that nobody asks anything: nothing, whatever it has counted before."""
    share, weight = watched.record.share, watched.spec.update.canary_weight
    message = "the canary gets no requests, as none of its workers is ready"
    if share:
        message = (
            f"the canary gets no requests: without a gateway it would get {share}% of them, more than twice "
            f"spec.update.canaryWeight ({weight}); promote it by hand, or set spec.update.golden, "
            "spec.routing.gateway, a greater canaryWeight, or spec.update.strategy: Immediate"
        )
    samples = watched.evidence.green.requests
    return Assessment(Outcome.UNDECIDED, Reason.NO_REQUESTS, message, samples, (), _kept(watched.evidence))


def assessment_of(verdict: Verdict) -> Assessment:
    """A verdict as the status tells it."""
    return Assessment(
        outcome=Outcome(verdict.outcome),
        reason=verdict.reason,
        message=verdict.message,
        samples=verdict.samples,
        checks=tuple(
            CheckStatus(name=item.name, result=CheckResult(item.state), message=item.detail[:1024])
            for item in verdict.checks
        ),
    )


def _as_told(record: UpdateStatus) -> Assessment:
    """What an earlier look has told."""
    fresh = Assessment()
    return Assessment(
        record.verdict,
        record.reason or fresh.reason,
        record.message or fresh.message,
        record.samples,
        record.checks,
        record.evidence,
    )


def _answers(pod: ObservedPod) -> bool:
    return pod.ready_at is not None and not pod.deleting and pod.ip is not None


def _is_short(watched: _Watched) -> bool:
    """Whether one of the revisions has fewer workers than it is to have: what it does then is no measure."""
    revisions = (watched.record.from_revision, watched.record.to_revision)
    sides = (watched.pool.deployment(revision) for revision in revisions)
    return any(item is None or not item.has_ready(max(1, item.size)) for item in sides)
