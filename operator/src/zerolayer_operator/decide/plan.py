"""What is to be done about a pool: which revisions exist, which one serves, how large they are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from zerolayer_operator.api.kinds import NETWORK_POLICY
from zerolayer_operator.api.revision import FrozenInputs, revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import ScalingStatus
from zerolayer_operator.decide.autoscaling import PlannedScaling, planned_scaling, unwanted_autoscalers
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.freeze import freeze
from zerolayer_operator.decide.sizing import planned_size
from zerolayer_operator.decide.tuning import Tuning
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


@dataclass(frozen=True)
class Plan:
    """The decision about one pool.

    Attributes:
        spec: The spec that the plan is for; ``None`` where nothing may be touched.
        wanted: Revision that the spec asks for; ``None`` where the spec can't be understood.
        serving: Revision that the Service is to select.
        revisions: Revisions that are to exist, the serving one first.
        remove: Deployments of revisions that nothing needs any more.
        unwanted: Other children that neither the spec nor the installation asks for any more.
        scaling: How the autoscaler is set; ``None`` where the pool has none.
        tuning: What the load asks of it; ``None`` where nobody looks at the load.
        scaling_status: The same as the status tells it.
        costs: Pods whose place among those that go first changes, and which it is; ``None`` for none.
        problems: What keeps the wanted revision from being made.
    """

    spec: PoolSpec | None
    wanted: str | None
    serving: str | None
    revisions: tuple[PlannedRevision, ...] = ()
    remove: tuple[ObservedDeployment, ...] = ()
    unwanted: tuple[ChildKey, ...] = ()
    scaling: PlannedScaling | None = None
    tuning: Tuning | None = None
    scaling_status: ScalingStatus | None = None
    costs: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    problems: tuple[Problem, ...] = field(default_factory=tuple)

    @property
    def acts(self) -> bool:
        """Whether children may be touched at all."""
        return self.spec is not None and self.serving is not None

    @property
    def updating(self) -> bool:
        """Whether another revision serves than the one that is wanted."""
        return self.wanted is not None and self.serving != self.wanted


def plan(pool: ObservedPool, defaults: Defaults) -> Plan:
    """Decide what to do; the same observation gives the same plan, so a crash at any point is harmless."""
    if pool.spec is None:
        invalid = Problem("InvalidSpec", f"{pool.invalid}; correct the spec")
        return Plan(spec=None, wanted=None, serving=_serving_now(pool), problems=(invalid,))
    wanted = revision_hash(pool.spec)
    if pool.spec.paused:
        return Plan(spec=None, wanted=wanted, serving=_serving_now(pool))
    frozen, problems = freeze(pool, pool.spec, wanted, defaults)
    serving = _serving_next(pool, pool.spec, wanted, can_exist=frozen is not None)
    if serving is None:
        return Plan(spec=None, wanted=wanted, serving=None, problems=problems)
    scaling = planned_scaling(pool, pool.spec, defaults)
    revisions = tuple(
        _planned(pool, pool.spec, revision, resolved, serving=serving, scaling=scaling)
        for revision, resolved in _needed(pool, serving, wanted, frozen).items()
    )
    keep = {serving, wanted, pool.service_revision, pool.status.serving_revision}
    return Plan(
        spec=pool.spec,
        wanted=wanted,
        serving=serving,
        revisions=revisions,
        remove=tuple(item for item in pool.deployments if item.revision not in keep),
        unwanted=tuple(_unwanted(pool, scaling, defaults)),
        scaling=scaling,
        problems=problems,
    )


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
    pool: ObservedPool, serving: str, wanted: str, frozen: FrozenInputs | None
) -> dict[str, FrozenInputs]:
    """The revisions that are to exist: the serving one, the wanted one, and one that still gets requests."""
    needed: dict[str, FrozenInputs] = {}
    for revision in (serving, pool.service_revision, pool.status.serving_revision):
        deployment = pool.deployment(revision)
        if deployment is not None:
            needed.setdefault(deployment.revision, deployment.frozen)
    if frozen is not None:
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


def _unwanted(pool: ObservedPool, scaling: PlannedScaling | None, defaults: Defaults) -> Iterator[ChildKey]:
    """Children to delete. Of the kinds that the operator makes, autoscalers and policies alone come and go.

    A copy that somebody made of another child, its owner reference included, is left to garbage collection.
    """
    unwanted = set(unwanted_autoscalers(pool, scaling))
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
) -> PlannedRevision:
    live = pool.deployment(revision)
    if live is not None and scaling is not None:
        sized_by_another = pool.autoscaler_revision == revision and live.size
        sleeps = revision == serving and not live.size and scaling.may_sleep
        if sized_by_another or sleeps:
            return PlannedRevision(revision, frozen, None, live)
    size = planned_size(spec, live, _predecessor(pool, revision, live))
    retiring = revision not in {serving, revision_hash(spec)}
    unchanged = live is not None and (live.size == size or retiring)
    return PlannedRevision(revision, frozen, None if unchanged else size, live)
