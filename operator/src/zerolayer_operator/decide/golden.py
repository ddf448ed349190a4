"""The golden set of an update: when it is asked, when its Job goes, and what it says of the canary."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import JOB, NETWORK_POLICY
from zerolayer_operator.api.revision import FrozenInputs, revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.update import GoldenConfigMap
from zerolayer_operator.api.update_status import Step, UpdateStatus
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.evidence import Golden
from zerolayer_operator.observe.access import section
from zerolayer_operator.observe.state import ChildKey, ObservedGolden, ObservedPool, Problem

ASKING: Final = frozenset({Step.SOAK, Step.AWAIT_PROMOTION})
"""Steps in which the golden set is asked: both revisions answer then."""

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
    if green is None or not _is_same(before, record):
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
    if _is_same(before, record) and record.step in {Step.PREPARE, *ASKING}:
        yield golden.problem


def unneeded_golden(
    pool: ObservedPool, planned: PlannedGolden | None, defaults: Defaults
) -> Iterator[ChildKey]:
    """Jobs of other updates or sets and their policies, and one whose report was lost: it is asked again."""
    kept: set[ChildKey] = set()
    lost = pool.golden is not None and pool.golden.lost
    if planned is not None and not lost:
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


def _is_same(before: UpdateStatus, record: UpdateStatus) -> bool:
    """Whether both are the same update, be it further on: what was observed is about the former."""
    return (before.started_at, before.to_revision) == (record.started_at, record.to_revision)


def golden_result(observed: ObservedGolden | None) -> Golden | None:
    """What the golden set says of the canary; ``None`` where the update has none."""
    if observed is None:
        return None
    report = observed.report
    if report is None:
        return Golden(unknown=observed.unknown)
    similarity = report.similarity
    answered = Golden(
        expected=report.green.expected,
        right=report.green.right,
        blue_right=report.blue.right,
        repeats=report.green.repeated,
        repeats_different=report.green.different,
        wrong=report.wrong,
        drifted=report.drifted,
    )
    if similarity is None:
        return answered
    return replace(answered, kept=similarity.kept, similarity=similarity.mean, threshold=similarity.threshold)
