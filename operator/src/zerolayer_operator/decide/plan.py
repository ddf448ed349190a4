"""What is to be done about a pool: which revisions exist, which one serves, how large they are."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from zerolayer_operator.api.kinds import NETWORK_POLICY
from zerolayer_operator.api.revision import FrozenInputs, revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import ScalingStatus
from zerolayer_operator.api.update import Strategy
from zerolayer_operator.api.update_status import FailedUpdate, FinishedUpdate, UpdateStatus
from zerolayer_operator.decide.autoscaling import PlannedScaling, planned_scaling, unwanted_autoscalers
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.freeze import freeze
from zerolayer_operator.decide.golden import (
    PlannedGolden,
    golden_problems,
    planned_golden,
    unneeded_golden,
)
from zerolayer_operator.decide.routing import unneeded_routing
from zerolayer_operator.decide.sizing import most_workers, planned_size
from zerolayer_operator.decide.traffic import Traffic
from zerolayer_operator.decide.tuning import Tuning
from zerolayer_operator.decide.update import advance
from zerolayer_operator.decide.update_facts import Assessment, Next
from zerolayer_operator.decide.update_plan import facts_of, movement, real_share, told
from zerolayer_operator.observe.access import timestamp
from zerolayer_operator.observe.state import ChildKey, ObservedDeployment, ObservedPool, Problem


@dataclass(frozen=True, slots=True)
class PlannedRevision:
    """A revision that is to exist.

    Attributes:
        frozen: Its resolved inputs.
        size: Size to write, or ``None`` where it is right or the autoscaler's business.
        live: Its Deployment, where it exists.
    """

    revision: str
    frozen: FrozenInputs
    size: int | None = None
    live: ObservedDeployment | None = None

    @property
    def shrinks(self) -> bool:
        """Whether it is to have fewer workers than it has."""
        return self.size is not None and self.live is not None and self.size < self.live.size


@dataclass(frozen=True, slots=True)
class PlannedCopy:
    """The copy of a revision's bundle that is to be made.

    Attributes:
        data: The bundle, in base64.
    """

    name: str
    revision: str
    digest: str
    data: str


@dataclass(frozen=True)
class Plan:
    """The decision about one pool.

    Attributes:
        spec: The spec that the plan is for; ``None`` where nothing may be touched.
        wanted: Revision that the spec asks for; ``None`` where the spec can't be understood.
        serving: Revision that the Service is to select.
        revisions: Revisions that are to exist, the serving one first.
        copies: Copies of bundles that are to be made.
        remove: Deployments of revisions that nothing needs any more.
        unwanted: Other children that neither the spec nor the installation asks for any more.
        scaling: How the autoscaler is set; ``None`` where the pool has none.
        tuning: What the load asks of it; ``None`` where nobody looks at the load.
        scaling_status: The same as the status tells it.
        costs: Pods whose place among those that go first changes, and which it is; ``None`` for none.
        traffic: Where requests go; ``None`` where nothing may be touched.
        update: The update that is going on, as it will be told.
        failed: The revision that is not tried again.
        finished: The update that is over with this plan.
        floor: Fewest workers while the update's step lasts; ``None`` where it does not matter.
        golden: The Job that asks the update's golden set.
        problems: What keeps the wanted revision from being made, or an update from going on.
    """

    spec: PoolSpec | None
    wanted: str | None
    serving: str | None
    revisions: tuple[PlannedRevision, ...] = ()
    copies: tuple[PlannedCopy, ...] = ()
    remove: tuple[ObservedDeployment, ...] = ()
    unwanted: tuple[ChildKey, ...] = ()
    scaling: PlannedScaling | None = None
    tuning: Tuning | None = None
    scaling_status: ScalingStatus | None = None
    costs: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    traffic: Traffic | None = None
    update: UpdateStatus | None = None
    failed: FailedUpdate | None = None
    finished: FinishedUpdate | None = None
    floor: int | None = None
    golden: PlannedGolden | None = None
    problems: tuple[Problem, ...] = field(default_factory=tuple)

    @property
    def acts(self) -> bool:
        """Whether children may be touched at all."""
        return self.spec is not None and self.serving is not None

    @property
    def updating(self) -> bool:
        """Whether another revision is to take over, or has just done so."""
        if self.update is not None:
            return True
        return self.wanted is not None and self.serving != self.wanted and self.failed is None


def plan(pool: ObservedPool, defaults: Defaults, now: datetime, assessment: Assessment | None = None) -> Plan:
    """Decide what to do; the same observation gives the same plan, so a crash at any point is harmless.

    Args:
        pool: The pool as observed.
        defaults: What the operator's installation says.
        now: The time.
        assessment: What the evidence says of the canary, where there is one.
    """
    if pool.spec is None:
        invalid = Problem("InvalidSpec", f"{pool.invalid}; correct the spec")
        return Plan(spec=None, wanted=None, serving=_serving_now(pool), problems=(invalid,))
    wanted = revision_hash(pool.spec)
    if pool.spec.paused:
        return Plan(spec=None, wanted=wanted, serving=_serving_now(pool))
    frozen, problems = freeze(pool, pool.spec, wanted, defaults)
    following = _next(pool, pool.spec, wanted, now, assessment or Assessment(), makeable=frozen is not None)
    if following is None:
        return Plan(spec=None, wanted=wanted, serving=None, problems=problems)
    decided = _plan(pool, pool.spec, defaults, wanted=wanted, frozen=frozen, following=following, now=now)
    found = (*_of_copies(pool, decided), *golden_problems(pool, decided.update), *_of_failure(following))
    return replace(decided, problems=(*problems, *found))


def _plan(
    pool: ObservedPool,
    spec: PoolSpec,
    defaults: Defaults,
    *,
    wanted: str,
    frozen: FrozenInputs | None,
    following: Next,
    now: datetime,
) -> Plan:
    serving, record, failed = following.serving, following.record, following.failed
    scaling = planned_scaling(pool, spec, defaults)
    moved = movement(pool, spec, serving, record, failed)
    needed = _needed(pool, following, wanted, frozen, now)
    revisions = tuple(
        _planned(pool, spec, revision, resolved, serving=serving, scaling=scaling, sizes=moved.sizes)
        for revision, resolved in needed.items()
    )
    keep = {*needed, *_until_recorded(following.finished)}
    if failed is None:
        keep.add(wanted)
    golden = planned_golden(pool, spec, pool.status.update, record)
    unneeded = (
        *unneeded_routing(pool, spec, moved.traffic, needed),
        *unneeded_golden(pool, golden, defaults, now),
    )
    return Plan(
        spec=spec,
        wanted=wanted,
        serving=serving,
        revisions=revisions,
        copies=tuple(_copies(pool, needed)),
        remove=tuple(item for item in pool.deployments if item.revision not in keep),
        unwanted=tuple(_unwanted(pool, scaling, defaults, unneeded)),
        scaling=scaling,
        traffic=moved.traffic,
        update=told(record, moved.traffic, real_share(pool, spec, record)) if record is not None else None,
        failed=failed,
        finished=following.finished,
        floor=moved.floor,
        golden=golden,
    )


def _next(
    pool: ObservedPool,
    spec: PoolSpec,
    wanted: str,
    now: datetime,
    assessment: Assessment,
    *,
    makeable: bool,
) -> Next | None:
    """Where the pool goes from here; ``None`` where there is nothing and can be nothing."""
    serving = _serving_now(pool)
    if serving is not None and _is_canaried(pool, spec, serving):
        facts = facts_of(pool, spec, wanted=wanted, serving=serving, now=now, assessment=assessment)
        return advance(replace(facts, makeable=makeable))
    following = _serving_next(pool, spec, wanted, can_exist=makeable)
    return Next(following) if following is not None else None


def _is_canaried(pool: ObservedPool, spec: PoolSpec, serving: str) -> bool:
    """Whether another revision has to prove itself first; what never worked has nothing to lose."""
    record, blue = pool.status.update, pool.deployment(serving)
    if record is not None and serving == record.to_revision:
        return True
    if spec.update.strategy == Strategy.IMMEDIATE or blue is None:
        return False
    return is_warm(pool, blue) and (blue.size > 0 or record is not None)


def _until_recorded(over: FinishedUpdate | None) -> tuple[str, ...]:
    """Revisions of an update that ends now: its record tells of their anchors, so they go with the next look.

    Were one gone whose end is not in the status yet, an operator that is killed in between could not tell.
    """
    return (over.from_revision, over.to_revision) if over is not None else ()


def _copies(pool: ObservedPool, needed: Mapping[str, FrozenInputs]) -> Iterator[PlannedCopy]:
    """Copies that are missing, of bundles that their sources still have."""
    for revision, frozen in needed.items():
        name = frozen.anchor_copy
        bundle = pool.bundles.get(name) if name is not None else None
        if name is not None and frozen.anchor is not None and bundle is not None and bundle.data is not None:
            yield PlannedCopy(name, revision, frozen.anchor.digest, bundle.data)


def _of_copies(pool: ObservedPool, decided: Plan) -> Iterator[Problem]:
    """What is wrong with the copies that revisions which exist need."""
    for item in decided.revisions:
        bundle = pool.bundles.get(item.frozen.anchor_copy or "")
        if item.live is not None and bundle is not None and bundle.problem is not None:
            yield bundle.problem


def _of_failure(following: Next) -> Iterator[Problem]:
    failed = following.failed
    if failed is not None:
        message = (
            f"revision {failed.revision} was not taken over: {failed.message}; revision {following.serving} "
            "serves; correct the spec, or change spec.update to have it tried again"
        )
        yield Problem(failed.reason, message, quote=failed.message)


def _retained(following: Next, now: datetime) -> Iterator[str]:
    """A revision that failed, for as long as one of its workers is kept."""
    failed = following.failed
    until = timestamp(failed.retained_until) if failed is not None else None
    if failed is not None and until is not None and now < until:
        yield failed.revision


def pinned(decided: Plan) -> Plan:
    """The plan with the autoscaler's floor where the update's step wants it."""
    if decided.scaling is None or decided.floor is None or decided.spec is None:
        return decided
    floor = min(max(decided.scaling.floor, decided.floor), most_workers(decided.spec))
    return replace(decided, scaling=replace(decided.scaling, floor=floor))


def is_warm(pool: ObservedPool, deployment: ObservedDeployment) -> bool:
    """Whether a revision has ever had a ready worker: dropping such a one may lose requests."""
    recorded = any(item.warm for item in pool.status.revisions or () if item.name == deployment.revision)
    return recorded or deployment.ready > 0


def _serving_now(pool: ObservedPool) -> str | None:
    """The revision that serves.

    The status is asked first: somebody may have edited the Service's selector. A status that was lost is made
    up for by the Service, and both by whichever revision has workers.
    """
    for revision in (pool.status.serving_revision, pool.service_revision):
        if pool.deployment(revision) is not None:
            return revision
    largest = max(pool.deployments, key=lambda item: (item.ready, item.size, item.revision), default=None)
    return largest.revision if largest is not None else None


def _serving_next(pool: ObservedPool, spec: PoolSpec, wanted: str, *, can_exist: bool) -> str | None:
    """The revision that is to serve: the wanted one once it can take over, until then the present one."""
    now = _serving_now(pool)
    if now == wanted:
        return wanted
    blue, green = pool.deployment(now), pool.deployment(wanted)
    if blue is None or not is_warm(pool, blue):
        # What never worked has nothing to lose, and shall not hold the room that its successor needs.
        return wanted if can_exist else now
    if green is None:
        return now
    size = planned_size(spec, green, blue)
    return wanted if green.size >= size and green.has_ready(size) else now


def _needed(
    pool: ObservedPool, following: Next, wanted: str, frozen: FrozenInputs | None, now: datetime
) -> dict[str, FrozenInputs]:
    """The revisions that are to exist: the serving one, those of an update, and one that gets requests."""
    serving, record = following.serving, following.record
    sides = (record.from_revision, record.to_revision) if record is not None else ()
    needed: dict[str, FrozenInputs] = {}
    retained = _retained(following, now)
    for revision in (serving, pool.service_revision, pool.status.serving_revision, *sides, *retained):
        deployment = pool.deployment(revision)
        if deployment is not None:
            needed.setdefault(deployment.revision, deployment.frozen)
    waits = record is not None and wanted not in sides
    if frozen is not None and following.failed is None and not waits:
        needed.setdefault(wanted, frozen)
    return dict(sorted(needed.items(), key=lambda item: (item[0] != serving, item[0] == wanted, item[0])))


def _predecessor(
    pool: ObservedPool, revision: str, live: ObservedDeployment | None
) -> ObservedDeployment | None:
    """The Deployment whose size a revision takes over.

    None where the Service moved already but whoever moved it was killed before the autoscaler followed: left
    without requests, the old one shrinks, and what has them now must not shrink with it.
    """
    blue = pool.deployment(_serving_now(pool))
    if blue is None or blue.revision == revision:
        return None
    has_requests = live is not None and pool.service_revision == revision and live.size > blue.size
    return None if has_requests else blue


def _unwanted(
    pool: ObservedPool, scaling: PlannedScaling | None, defaults: Defaults, unneeded: Iterable[ChildKey]
) -> Iterator[ChildKey]:
    """Children to delete. Of what the operator makes, autoscalers, policies, routing and Jobs come and go.

    A copy that somebody made of another child, its owner reference included, is left to garbage collection.
    """
    unwanted = {*unwanted_autoscalers(pool, scaling), *unneeded}
    if not defaults.network_policy:
        unwanted.add(ChildKey(NETWORK_POLICY.kind, pool.name))
    for key, live in pool.children.items():
        if key in unwanted and "deletionTimestamp" not in live["metadata"]:
            yield key


def _planned(
    pool: ObservedPool,
    spec: PoolSpec,
    revision: str,
    frozen: FrozenInputs,
    *,
    serving: str,
    scaling: PlannedScaling | None,
    sizes: Mapping[str, int],
) -> PlannedRevision:
    live = pool.deployment(revision)
    if revision in sizes:
        size = sizes[revision]
        return PlannedRevision(
            revision, frozen, None if live is not None and live.size == size else size, live
        )
    if live is not None and scaling is not None:
        sized_by_another = pool.autoscaler_revision == revision and live.size
        sleeps = revision == serving and not live.size and scaling.may_sleep
        if sized_by_another or sleeps:
            return PlannedRevision(revision, frozen, None, live)
    size = planned_size(spec, live, _predecessor(pool, revision, live))
    retiring = revision not in {serving, revision_hash(spec)}
    unchanged = live is not None and (live.size == size or retiring)
    return PlannedRevision(revision, frozen, None if unchanged else size, live)
