"""The switch between revisions, under any order of events: a pool that served goes on serving.

A model of a cluster stands around the real decisions. Each step of a plan is one write, and the operator may
be killed before any of them.
"""

from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, spec
from zerolayer_operator.api.revision import FrozenInputs, revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import PoolStatus, RevisionStatus
from zerolayer_operator.build.children import children
from zerolayer_operator.decide.plan import Plan, is_warm, plan
from zerolayer_operator.observe.state import ObservedDeployment, ObservedPool

VARIANTS: tuple[dict[str, Any], ...] = ({}, {"drainSeconds": 60}, {"drainSeconds": 50})
SIZINGS: tuple[dict[str, Any], ...] = (
    {},
    {"replicas": 1},
    {"replicas": 4},
    {"autoscaling": {"minReplicas": 1, "maxReplicas": 6}},
    {"autoscaling": {"minReplicas": 3, "maxReplicas": 5}},
)
SPECS = {
    (i, j): spec(**variant, **sizing)
    for i, variant in enumerate(VARIANTS)
    for j, sizing in enumerate(SIZINGS)
}


class Switching(RuleBasedStateMachine):
    """A pool in a cluster where anything may happen between two steps of the operator."""

    def __init__(self) -> None:
        super().__init__()
        self.variant: dict[str, Any] = {}
        self.sizing: dict[str, Any] = {}
        self.generation = 1
        self.sizes: dict[str, int] = {}
        self.ready: dict[str, int] = {}
        self.service: str | None = None
        self.autoscaler: str | None = None
        self.status = PoolStatus()
        self.broken: set[str] = set()
        self.served = False

    # What users and the cluster do.

    @rule(variant=st.sampled_from(VARIANTS))
    def change_worker(self, variant: dict[str, Any]) -> None:
        self.variant = variant
        self.generation += 1

    @rule(sizing=st.sampled_from(SIZINGS))
    def change_size(self, sizing: dict[str, Any]) -> None:
        self.sizing = sizing
        self.generation += 1

    @precondition(lambda self: self.sizes)
    @rule(data=st.data())
    def worker_becomes_ready(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.sizes)))
        if name not in self.broken:
            self.ready[name] = min(self.ready[name] + 1, self.sizes[name])

    @precondition(lambda self: self.sizes)
    @rule(data=st.data())
    def all_workers_become_ready(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.sizes)))
        if name not in self.broken:
            self.ready[name] = self.sizes[name]

    @precondition(lambda self: self.autoscaler in self.sizes)
    @rule(size=st.integers(1, 6))
    def autoscaler_acts(self, size: int) -> None:
        scaling = self._spec().autoscaling
        if scaling is not None:
            self._resize(str(self.autoscaler), min(max(size, scaling.min_replicas), scaling.max_replicas))

    @precondition(lambda self: self.sizes)
    @rule(data=st.data())
    def somebody_edits_the_service(self, data: st.DataObject) -> None:
        self.service = data.draw(st.sampled_from([*sorted(self.sizes), "nobody"]))

    @rule()
    def status_is_lost(self) -> None:
        if self.service in self.sizes:
            self.status = PoolStatus()

    # What the operator does.

    @rule(writes=st.integers(0, 12))
    def operator_works_until_it_is_killed(self, writes: int) -> None:
        self._work(writes)

    @rule()
    def operator_works(self) -> None:
        self._work(None)

    @rule()
    def operator_settles(self) -> None:
        """Left alone with workers that start, the pool ends with the wanted revision alone, at its size."""
        for _ in range(6):
            self._work(None)
            self.ready = dict(self.sizes)
        wanted = revision_hash(self._spec())
        assert set(self.sizes) == {wanted}
        assert self.service == self.status.serving_revision == wanted
        assert self.autoscaler == (wanted if self._spec().autoscaling else None)
        if self._spec().autoscaling is None:
            assert self.sizes[wanted] == self.sizing.get("replicas", 1)

    # What must hold whatever happened.

    @invariant()
    def serving_revision_exists(self) -> None:
        if self.status.serving_revision is not None:
            assert self.status.serving_revision in self.sizes

    def _work(self, writes: int | None) -> None:
        observed = self._observe()
        decided = plan(observed, DEFAULTS, NOW)
        for number, step in enumerate(self._steps(observed, decided)):
            if writes is not None and number >= writes:
                return
            before = self._answering()
            step()
            if before and self.sizing.get("replicas") != 0:
                assert self._answering(), "a write of the operator left the pool without a worker"

    def _answering(self) -> int:
        """Ready workers behind the Service."""
        return self.ready.get(self.service or "", 0)

    def _steps(self, observed: ObservedPool, decided: Plan) -> Iterator[Callable[[], None]]:
        """The writes that carry out a plan, in the order of ``apply.execute``."""
        assert decided.serving is not None
        serving, of = decided.serving, self._spec()
        built = children(observed, decided, DEFAULTS)
        assert len({(body["kind"], body["metadata"]["name"]) for body in built}) == len(built)
        if of.autoscaling is None and self.autoscaler is not None:
            yield lambda: setattr(self, "autoscaler", None)
        for item in decided.revisions:
            if item.live is None:
                yield lambda name=item.revision: self._create(name)
            if item.size is not None:
                yield lambda name=item.revision, size=item.size: self._scale(name, size)
        if self.service != serving:
            yield lambda: self._select(observed, serving)
        if of.autoscaling is not None and self.autoscaler != serving:
            yield lambda: setattr(self, "autoscaler", serving)
        for gone in decided.remove:
            yield lambda name=gone.revision: self._delete(name)
        yield lambda: self._write_status(observed, decided)

    def _create(self, name: str) -> None:
        self.sizes[name], self.ready[name] = 1, 0

    def _scale(self, name: str, size: int) -> None:
        of = self._spec()
        assert not (of.autoscaling and self.autoscaler == name and self.sizes[name]), (
            "the autoscaler's own field"
        )
        if of.autoscaling is None and name == self.service and len(self.sizes) == 1:
            assert size == self.sizing.get("replicas", 1)
        self._resize(name, size)

    def _select(self, observed: ObservedPool, name: str) -> None:
        """A Service moves to a revision as large and as warm as it should be, unless nothing served."""
        blue = observed.deployment(self.status.serving_revision)
        if blue is not None and blue.revision != name and is_warm(observed, blue):
            green = observed.deployment(name)
            assert green is not None
            scaling = self._spec().autoscaling
            fixed = self.sizing.get("replicas", 1)
            needed = min(blue.size, scaling.max_replicas) if scaling is not None else fixed
            assert green.ready >= needed, "the switch made the pool smaller"
        self.service = name

    def _delete(self, name: str) -> None:
        assert name not in {self.service, self.status.serving_revision}
        del self.sizes[name], self.ready[name]

    def _resize(self, name: str, size: int) -> None:
        self.sizes[name] = size
        self.ready[name] = min(self.ready[name], size)

    def _write_status(self, observed: ObservedPool, decided: Plan) -> None:
        revisions = tuple(
            RevisionStatus(
                name=item.revision,
                image=item.frozen.image,
                warm=item.live is not None and is_warm(observed, item.live),
            )
            for item in decided.revisions
        )
        self.status = PoolStatus(serving_revision=decided.serving, revisions=revisions)

    def _spec(self) -> PoolSpec:
        return SPECS[VARIANTS.index(self.variant), SIZINGS.index(self.sizing)]

    def _observe(self) -> ObservedPool:
        return pool(
            self._spec(),
            generation=self.generation,
            status=self.status,
            deployments=tuple(self._deployment(name) for name in sorted(self.sizes)),
            service_revision=self.service,
            autoscaler_revision=self.autoscaler,
        )

    def _deployment(self, name: str) -> ObservedDeployment:
        return deployment(
            name, size=self.sizes[name], ready=self.ready[name], frozen=FrozenInputs(image="worker:1")
        )


TestSwitching = Switching.TestCase
TestSwitching.settings = settings(max_examples=60, stateful_step_count=30)
