"""The golden set of an update: when it is asked, when its Job goes, and what it says of the canary."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.golden import GoldenReport
from zerolayer_operator.api.kinds import JOB, NETWORK_POLICY
from zerolayer_operator.api.revision import FrozenInputs, revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.update import GoldenConfigMap
from zerolayer_operator.api.update_status import Step, UpdateStatus
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.evidence import Golden
from zerolayer_operator.decide.update_facts import same_update
from zerolayer_operator.observe.access import section
from zerolayer_operator.observe.state import ChildKey, ObservedGolden, ObservedPool, Problem

ASKING: Final = frozenset({Step.SOAK, Step.AWAIT_PROMOTION})
"""Steps in which the golden set is asked: both revisions answer then."""

AGAIN: Final = timedelta(minutes=2)
"""How long after a run that left questions unanswered the set is asked again."""

_NAMED: Final = 5
"""Questions that a message names."""

_LEAST_S: Final = 600
_MOST_S: Final = 6 * 3600


@dataclass(frozen=True, slots=True)
class PlannedGolden:
    """The Job that is to ask the golden set.

    Attributes:
        name: Its name, and that of its NetworkPolicy.
        run: For which update, and which set.
        source: Where the questions are.
        blue: The revision that serves.
        green: The canary.
        frozen: The canary's inputs.
        deadline_s: How long it may take, in seconds.
        missing: Whether it has to be made.
    """

    name: str
    run: str
    source: GoldenConfigMap
    blue: str
    green: str
    frozen: FrozenInputs
    deadline_s: int
    missing: bool


def planned_golden(
    pool: ObservedPool, spec: PoolSpec, before: UpdateStatus | None, record: UpdateStatus | None
) -> PlannedGolden | None:
    """The Job that asks the golden set of an update; ``None`` where there is to be none.

    Args:
        pool: The pool as observed.
        spec: Its spec.
        before: The update as the status has it: what was observed of the golden set is about this one.
        record: The update as it goes on.
    """
    golden, observed = spec.update.golden, pool.golden
    if golden is None or observed is None or before is None or record is None:
        return None
    green = pool.deployment(record.to_revision)
    if green is None or not same_update(before, record):
        return None
    name = names.golden_name(pool.name, record.to_revision)
    begins = record.step in ASKING and observed.problem is None and green.revision == revision_hash(spec)
    if observed.job is None and (not begins or ChildKey(JOB.kind, name) in pool.children):
        return None
    return PlannedGolden(
        name=name,
        run=observed.run,
        source=golden.config_map,
        blue=record.from_revision,
        green=record.to_revision,
        frozen=green.frozen,
        deadline_s=min(max(spec.update.max_soak_s, _LEAST_S), _MOST_S),
        missing=observed.job is None,
    )


def golden_problems(pool: ObservedPool, record: UpdateStatus | None) -> Iterator[Problem]:
    """Why the golden set of an update that goes on can't be asked."""
    before, golden = pool.status.update, pool.golden
    if golden is None or golden.problem is None or before is None or record is None:
        return
    if same_update(before, record) and record.step in {Step.PREPARE, *ASKING}:
        yield golden.problem


def unneeded_golden(
    pool: ObservedPool, planned: PlannedGolden | None, defaults: Defaults, now: datetime
) -> Iterator[ChildKey]:
    """Jobs of other updates or sets and their policies, and one that has to run again."""
    kept: set[ChildKey] = set()
    if planned is not None and not _runs_again(pool.golden, now):
        kept.add(ChildKey(JOB.kind, planned.name))
    if planned is not None and defaults.network_policy:
        kept.add(ChildKey(NETWORK_POLICY.kind, planned.name))
    for key, live in pool.children.items():
        labels = section(live, "metadata", "labels")
        ours = key.kind in {JOB.kind, NETWORK_POLICY.kind} and labels.get(names.LABEL_GOLDEN) == pool.name
        # A copy that somebody made, its labels included, is left alone.
        named = key.name == names.golden_name(pool.name, str(labels.get(names.LABEL_REVISION)))
        if ours and named and key not in kept:
            yield key


def _runs_again(golden: ObservedGolden | None, now: datetime) -> bool:
    """Whether the report was lost, or a side left questions unanswered, as one short of workers may."""
    if golden is None or golden.report is None:
        return golden is not None and golden.lost
    rested = golden.ended_at is None or now - golden.ended_at >= AGAIN
    return bool(golden.report.incomplete) and rested


def is_asking(observed: ObservedGolden | None) -> bool:
    """Whether questions of the golden set may reach the workers."""
    return observed is not None and observed.job is not None and observed.ended_at is None


def golden_result(observed: ObservedGolden | None) -> Golden | None:
    """What the golden set says of the canary; ``None`` where the update has none."""
    if observed is None:
        return None
    report = observed.report
    if report is None:
        return Golden(unknown=observed.unknown)
    if report.incomplete:
        return Golden(unknown=f"questions of the golden set got no answer, {report.incomplete}{_why(report)}")
    return Golden(
        expected=report.expected,
        right=report.green.hits,
        blue_right=report.blue.hits,
        kept=report.similarity.kept,
        similarity=report.similarity.mean,
        threshold=report.similarity.threshold,
        repeats=report.green.asked,
        repeats_different=report.green.repeats_differ,
        failing=tuple(f"{item.id} ({item.why})" for item in report.failing[:_NAMED]),
    )


def _why(report: GoldenReport) -> str:
    first = next(iter(report.failing), None)
    return f": {first.id}: {first.why}" if first is not None else ""
