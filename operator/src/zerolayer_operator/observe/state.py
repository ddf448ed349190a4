"""What was observed of a pool, as plain frozen values that decisions are made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from zerolayer_operator.api.golden import GoldenReport
from zerolayer_operator.api.revision import FrozenInputs
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.api.update_status import Wish

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChildKey:
    """Names one child of a pool in the pool's namespace."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps a pool from what its spec asks.

    Attributes:
        reason: One word for programs.
        message: A sentence for people that says what is wrong and what to do.
        quote: The part of the message that others said, whose figures may differ each time they say the same.
        vague: Whether the quote tells no more than that the problem is still there.
    """

    reason: str
    message: str
    quote: str = ""
    vague: bool = False


@dataclass(frozen=True, slots=True)
class Pin:
    """What a reference to an image stands for.

    Attributes:
        reference: The image, with its digest where that is known.
        unknown: Why it is not.
    """

    reference: str
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class ObservedBundle:
    """The bundle of a revision whose anchor comes from a ConfigMap.

    Attributes:
        uid: Of the copy, where there is one.
        data: What the copy is to hold, in base64, where there is none and the source has it.
        problem: Why there is neither.
        leftover: Whether the copy of an earlier pool of the same name is in the way of that: garbage to be
            collected.

    A copy that a person made has none of these.
    """

    uid: str | None = None
    data: str | None = None
    problem: Problem | None = None
    leftover: bool = False


@dataclass(frozen=True, slots=True)
class Wishes:
    """What people have asked for.

    An annotation stays on the pool when its update is over, and must not decide about a revision that is
    tried again. When it was written is known only roughly: the API server keeps one time for all that one
    program has set.

    Attributes:
        promote: Revision that is to take over.
        roll_back: Revision that is to be left.
        standing: Wishes that name the update's revision, but were there before it began.
    """

    promote: str | None = None
    roll_back: str | None = None
    standing: tuple[Wish, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedGolden:
    """The golden set of an update, and what became of its Job.

    Attributes:
        run: For which update, and which set: a Job that was made for another one is not meant.
        job: UID of the Job, where there is one.
        report: What was answered, once that is known.
        ended_at: When its pod ended.
        unknown: Why there is no report, for people.
        lost: Whether the Job is done and its report gone, so that it has to run again.
        problem: Why there can be no Job.
    """

    run: str
    job: str | None = None
    report: GoldenReport | None = None
    ended_at: datetime | None = None
    unknown: str = ""
    lost: bool = False
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class ObservedDeployment:
    """One revision's Deployment.

    Attributes:
        size: Wanted pods (``spec.replicas``).
        frozen: What was resolved for the revision when the Deployment was made.
        template: The pod template that it was made with.
        generation: Counts changes of the Deployment's own spec.
        existing: Pods that exist.
        ready: Pods that are ready.
        current: Whether the figures are about the Deployment as it stands now.
        deadline_exceeded: Whether no pod became ready within the progress deadline.
        failure: Why pods can't be made at all (quota, admission), where that is so.
    """

    revision: str
    name: str
    uid: str
    size: int
    frozen: FrozenInputs
    template: Object
    generation: int = 0
    existing: int = 0
    ready: int = 0
    current: bool = True
    deadline_exceeded: bool = False
    failure: str | None = None

    def has_ready(self, count: int) -> bool:
        """Whether at least so many pods are ready, and that is not old news."""
        return self.current and self.ready >= count


@dataclass(frozen=True, slots=True)
class DeletionCost:
    """The rank that a worker has among those that a smaller pool gives up.

    Attributes:
        value: As it is written down.
        ours: Whether the operator wrote it, and nobody else.
    """

    value: str
    ours: bool


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """One worker.

    Attributes:
        scheduled_at: When it got its node.
        container_started_at: When its container began to run; ``None`` once it has restarted, since its
            first start is not on record then.
        ready_at: When it last became ready, where it is.
        gone_by: When it will have been ended, where it is on its way out.
        problem: What its containers or the scheduler complain about.
        ip: Its address, once it has one.
        deletion_cost: Its rank among those that are given up, where it has one.
    """

    name: str
    revision: str
    uid: str = ""
    node: str | None = None
    scheduled_at: datetime | None = None
    container_started_at: datetime | None = None
    ready_at: datetime | None = None
    started: bool = False
    gone_by: datetime | None = None
    problem: Problem | None = None
    ip: str | None = None
    deletion_cost: DeletionCost | None = None

    @property
    def deleting(self) -> bool:
        """Whether it is on its way out."""
        return self.gone_by is not None


@dataclass(frozen=True)
class ObservedPool:
    """A pool and everything around it that decisions depend on.

    Attributes:
        spec: The spec, or ``None`` where it can't be understood; ``invalid`` says why then.
        status: The status as last written; empty where there is none.
        raw_status: The same as the API server has it, to see whether a write would change anything.
        children: Live objects that the pool controls.
        foreign: Objects that have a child's name but belong to somebody else.
        leftover: Such objects that belonged to an earlier pool of this name: garbage to be collected.
        missing: Problems with objects that the spec refers to.
        service_revision: Revision that the pool's Service selects now.
        autoscaler_revision: Revision that the pool's autoscaler sizes now.
        model_commit: What the wanted revision's model reference was resolved to just now.
        unresolved: Why it could not be.
        pins: What the images of the wanted revision stand for, by their references in the spec; empty where
            that is on record.
        monitored: Whether the pool is to have a PodMonitor, and the API server knows such.
        scalable_by_keda: Whether the pool may have a ScaledObject, and the API server knows such.
        routable: Whether the API server knows HTTPRoutes; ``None`` where pools may not have any.
        autoscaler: The HorizontalPodAutoscaler that sizes the pool, also where KEDA owns it; empty if none.
        external_metrics: Whether the cluster has external metrics; only looked up for a pool that needs them.
        wishes: What people have asked of the update.
        bundles: What is known of the bundles that are to be kept as copies, by the names of these.
        golden: The golden set of the update that is going on; ``None`` where it has none.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    spec: PoolSpec | None
    invalid: str | None = None
    status: PoolStatus = field(default_factory=PoolStatus)
    raw_status: Mapping[str, Any] = field(default_factory=dict[str, Any])
    children: Mapping[ChildKey, Object] = field(default_factory=dict[ChildKey, Object])
    foreign: frozenset[ChildKey] = frozenset()
    leftover: frozenset[ChildKey] = frozenset()
    deployments: tuple[ObservedDeployment, ...] = ()
    pods: tuple[ObservedPod, ...] = ()
    missing: tuple[Problem, ...] = ()
    service_revision: str | None = None
    autoscaler_revision: str | None = None
    model_commit: str | None = None
    unresolved: str | None = None
    pins: Mapping[str, Pin] = field(default_factory=dict[str, Pin])
    monitored: bool = False
    scalable_by_keda: bool = False
    routable: bool | None = None
    autoscaler: Object = field(default_factory=dict[str, Any])
    external_metrics: bool = True
    wishes: Wishes = Wishes()
    bundles: Mapping[str, ObservedBundle] = field(default_factory=dict[str, "ObservedBundle"])
    golden: ObservedGolden | None = None

    def deployment(self, revision: str | None) -> ObservedDeployment | None:
        """The Deployment of a revision, where there is one."""
        return next((item for item in self.deployments if item.revision == revision), None)
