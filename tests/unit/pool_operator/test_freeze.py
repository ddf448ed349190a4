"""What is looked up once for a revision and kept with it, and what keeps one from being made."""

from dataclasses import replace

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, serving, spec
from zerolayer_operator.api.revision import FrozenInputs, revision_hash
from zerolayer_operator.api.status import PoolStatus, RevisionStatus
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.observe.state import ObservedPool, Pin

OLD = spec()
NEW = spec(drainSeconds=60)


class TestFrozenInputs:
    def test_another_default_image_is_no_new_revision(self) -> None:
        observed = pool(
            OLD, status=serving(OLD), service_revision=revision_hash(OLD), deployments=(deployment(OLD),)
        )

        decided = plan(observed, replace(DEFAULTS, worker_image="worker:2"), NOW)

        assert [item.frozen.image for item in decided.revisions] == ["worker:1"]

    def test_next_revision_takes_the_new_default(self) -> None:
        observed = pool(
            NEW, status=serving(OLD), service_revision=revision_hash(OLD), deployments=(deployment(OLD),)
        )

        decided = plan(observed, replace(DEFAULTS, worker_image="worker:2"), NOW)

        assert {item.revision: item.frozen.image for item in decided.revisions} == {
            revision_hash(OLD): "worker:1",
            revision_hash(NEW): "worker:2",
        }

    def test_image_recorded_in_the_status_outlives_its_deployment(self) -> None:
        observed = pool(OLD, status=serving(OLD))

        decided = plan(observed, replace(DEFAULTS, worker_image="worker:2"), NOW)

        assert decided.revisions[0].frozen.image == "worker:1"

    def test_unresolved_model_leaves_the_old_revision_alone(self) -> None:
        observed = pool(
            NEW,
            status=serving(OLD),
            service_revision=revision_hash(OLD),
            deployments=(deployment(OLD, ready=1),),
            unresolved="no such revision",
        )

        decided = plan(observed, DEFAULTS, NOW)

        assert decided.serving == revision_hash(OLD)
        assert [item.revision for item in decided.revisions] == [revision_hash(OLD)]
        assert [problem.reason for problem in decided.problems] == ["ModelUnresolved"]

    def test_unresolved_model_of_a_new_pool_touches_nothing(self) -> None:
        decided = plan(pool(NEW, unresolved="no such revision"), DEFAULTS, NOW)

        assert not decided.acts
        assert decided.problems

    def test_model_image_needs_a_path_where_it_is_copied(self) -> None:
        image = spec(model={"name": "m", "source": {"image": {"reference": "models/m:1"}}})

        decided = plan(pool(image), replace(DEFAULTS, image_volumes=False), NOW)

        assert [problem.reason for problem in decided.problems] == ["ImagePathNeeded"]
        assert plan(pool(image), DEFAULTS, NOW).problems == ()


ANCHOR = {
    "version": "v1",
    "digest": f"sha256:{'1' * 64}",
    "source": {"image": {"reference": "a:1", "path": "b"}},
}


class TestImages:
    WORKER = Pin("worker:1@sha256:aa")
    MODEL = spec(model={"name": "m", "source": {"image": {"reference": "models/m:1", "path": "w"}}})

    def frozen(self, observed: ObservedPool) -> FrozenInputs:
        (item,) = plan(observed, DEFAULTS, NOW).revisions
        return item.frozen

    def test_new_revision_takes_digests_and_records_them(self) -> None:
        pins = {"worker:1": self.WORKER, "models/m:1": Pin("models/m:1@sha256:bb")}

        frozen = self.frozen(pool(self.MODEL, pins=pins))

        assert frozen == FrozenInputs(image="worker:1@sha256:aa", model_image="models/m:1@sha256:bb")

    def test_image_of_an_anchor_is_one_of_them(self) -> None:
        pins = {"worker:1": self.WORKER, "a:1": Pin("a:1@sha256:dd")}
        of = spec(anchor=ANCHOR)

        frozen = self.frozen(pool(of, pins=pins))
        recorded = RevisionStatus(
            name=revision_hash(of), image="worker:1@sha256:aa", anchor_image="a:1@sha256:ee"
        )
        again = self.frozen(pool(of, status=PoolStatus(revisions=(recorded,)), pins=pins))

        assert (frozen.anchor_image, frozen.unpinned) == ("a:1@sha256:dd", None)
        assert again.anchor_image == "a:1@sha256:ee"
        assert self.frozen(pool(of, pins={"a:1": Pin("a:1", "no")})).unpinned == "anchor image a:1: no"

    def test_pools_own_image_is_the_one_that_counts(self) -> None:
        own = spec(worker={"device": "cpu", "image": "mine:2"})
        pins = {"worker:1": self.WORKER, "mine:2": Pin("mine:2@sha256:cc")}

        assert self.frozen(pool(own, pins=pins)).image == "mine:2@sha256:cc"

    def test_tag_is_kept_where_its_digest_is_unknown_and_why_is_recorded(self) -> None:
        pins = {"worker:1": self.WORKER, "models/m:1": Pin("models/m:1", "docker.io answers 503")}

        frozen = self.frozen(pool(self.MODEL, pins=pins))

        assert (frozen.image, frozen.model_image) == ("worker:1@sha256:aa", "models/m:1")
        assert frozen.unpinned == "model image models/m:1: docker.io answers 503"

    def test_both_unknown_are_both_told(self) -> None:
        pins = {"worker:1": Pin("worker:1", "no"), "models/m:1": Pin("models/m:1", "neither")}

        unpinned = self.frozen(pool(self.MODEL, pins=pins)).unpinned

        assert unpinned == "worker image worker:1: no; model image models/m:1: neither"

    def test_what_a_deployment_was_made_with_stays(self) -> None:
        kept = FrozenInputs(image="worker:1", unpinned="worker image worker:1: no")
        live = deployment(OLD, ready=1, frozen=kept)

        assert self.frozen(pool(OLD, deployments=(live,), pins={"worker:1": self.WORKER})) == kept

    def test_what_the_status_records_stays(self) -> None:
        recorded = RevisionStatus(
            name=revision_hash(self.MODEL), image="worker:1@sha256:aa", model_image="m:1", unpinned="why"
        )
        status = PoolStatus(revisions=(recorded,))

        frozen = self.frozen(pool(self.MODEL, status=status, pins={"worker:1": Pin("worker:1@sha256:ff")}))

        assert frozen == FrozenInputs(image="worker:1@sha256:aa", model_image="m:1", unpinned="why")


class TestHostPath:
    ON = replace(DEFAULTS, allow_host_path=True)
    THERE = spec(model={"name": "m", "source": {"hostPath": {"path": "/srv/m"}}})
    MOVED = spec(model={"name": "m", "source": {"hostPath": {"path": "/etc"}}})

    def test_without_the_switch_a_pool_gets_no_workers_and_is_told_why(self) -> None:
        decided = plan(pool(self.THERE), DEFAULTS, NOW)

        assert not decided.acts
        (problem,) = decided.problems
        assert problem.reason == "HostPathNotAllowed"
        assert "allowHostPath=true" in problem.message

    def test_with_the_switch_it_is_a_source_like_others(self) -> None:
        decided = plan(pool(self.THERE), self.ON, NOW)

        assert decided.acts
        assert decided.problems == ()

    @pytest.mark.parametrize("wanted", [THERE, MOVED], ids=["as before", "another folder"])
    def test_switched_off_later_what_runs_goes_on_and_nothing_new_is_made(self, wanted) -> None:
        observed = pool(
            wanted,
            status=serving(self.THERE),
            service_revision=revision_hash(self.THERE),
            deployments=(deployment(self.THERE, ready=1),),
        )

        decided = plan(observed, DEFAULTS, NOW)

        assert [item.revision for item in decided.revisions] == [revision_hash(self.THERE)]
        assert decided.remove == ()
        assert [problem.reason for problem in decided.problems] == ["HostPathNotAllowed"]

    def test_recorded_revision_whose_deployment_is_gone_is_not_made_again(self) -> None:
        assert not plan(pool(self.THERE, status=serving(self.THERE)), DEFAULTS, NOW).acts
