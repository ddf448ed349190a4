"""Which revision serves, which ones exist and how large they are."""

from dataclasses import replace

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, serving, spec
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.observe.state import ChildKey

OLD = spec()
NEW = spec(drainSeconds=60)
OTHER = spec(drainSeconds=50)


def sizes(decided) -> dict[str, int | None]:
    return {item.revision: item.size for item in decided.revisions}


def test_new_pool_serves_the_wanted_revision_at_once() -> None:
    decided = plan(pool(OLD), DEFAULTS, NOW)

    assert decided.serving == decided.wanted == revision_hash(OLD)
    assert sizes(decided) == {revision_hash(OLD): 1}
    assert decided.revisions[0].frozen.image == "worker:1"


@pytest.mark.parametrize(
    ("ready", "size", "current", "takes_over"),
    [(0, 1, True, False), (1, 1, True, True), (1, 1, False, False), (1, 3, True, True)],
    ids=["cold", "warm", "old news", "more than asked for"],
)
def test_wanted_revision_takes_over_only_when_warm(ready, size, current, takes_over) -> None:
    observed = pool(
        NEW,
        status=serving(OLD),
        service_revision=revision_hash(OLD),
        deployments=(deployment(OLD, ready=1), deployment(NEW, size=size, ready=ready, current=current)),
    )

    decided = plan(observed, DEFAULTS, NOW)

    assert decided.serving == revision_hash(NEW if takes_over else OLD)
    assert decided.remove == ()


def test_every_worker_of_a_fixed_size_must_be_warm() -> None:
    new = spec(drainSeconds=60, replicas=3)
    observed = pool(
        new,
        status=serving(OLD),
        service_revision=revision_hash(OLD),
        deployments=(deployment(OLD, size=3, ready=3), deployment(new, size=3, ready=2)),
    )

    assert plan(observed, DEFAULTS, NOW).serving == revision_hash(OLD)


def test_old_revision_goes_only_after_service_and_status_say_that_the_new_one_serves() -> None:
    both = (deployment(OLD, ready=1), deployment(NEW, ready=1))
    old, new = revision_hash(OLD), revision_hash(NEW)
    cases = {
        (old, old): (),
        (new, old): (),
        (old, new): (),
        (new, new): (old,),
    }
    for (by_service, by_status), removed in cases.items():
        observed = pool(
            NEW,
            status=serving(OLD if by_status == old else NEW),
            service_revision=by_service,
            deployments=both,
        )
        decided = plan(observed, DEFAULTS, NOW)
        assert tuple(item.revision for item in decided.remove) == removed, (by_service, by_status)


def test_revision_that_was_never_warm_makes_room_at_once() -> None:
    observed = pool(
        NEW,
        status=serving(OLD, warm=False),
        service_revision=revision_hash(OLD),
        deployments=(deployment(OLD, ready=0),),
    )

    assert plan(observed, DEFAULTS, NOW).serving == revision_hash(NEW)


def test_warm_revision_that_lost_its_workers_still_waits_for_a_warm_successor() -> None:
    observed = pool(
        NEW,
        status=serving(OLD),
        service_revision=revision_hash(OLD),
        deployments=(deployment(OLD, ready=0), deployment(NEW, ready=0)),
    )

    assert plan(observed, DEFAULTS, NOW).serving == revision_hash(OLD)


def test_third_revision_replaces_the_one_that_warms_up() -> None:
    observed = pool(
        OTHER,
        status=serving(OLD),
        service_revision=revision_hash(OLD),
        deployments=(deployment(OLD, ready=1), deployment(NEW, ready=0)),
    )

    decided = plan(observed, DEFAULTS, NOW)

    assert [item.revision for item in decided.remove] == [revision_hash(NEW)]
    assert set(sizes(decided)) == {revision_hash(OLD), revision_hash(OTHER)}


def test_going_back_to_the_serving_revision_drops_the_other() -> None:
    observed = pool(
        OLD,
        status=serving(OLD),
        service_revision=revision_hash(OLD),
        deployments=(deployment(OLD, ready=1), deployment(NEW, ready=0)),
    )

    decided = plan(observed, DEFAULTS, NOW)

    assert decided.serving == revision_hash(OLD)
    assert [item.revision for item in decided.remove] == [revision_hash(NEW)]


def test_hand_edited_service_does_not_move_the_pool() -> None:
    observed = pool(
        NEW,
        status=serving(OLD),
        service_revision=revision_hash(NEW),
        deployments=(deployment(OLD, ready=1), deployment(NEW, ready=0)),
    )

    assert plan(observed, DEFAULTS, NOW).serving == revision_hash(OLD)


def test_lost_status_is_made_up_for_by_the_service() -> None:
    observed = pool(
        NEW,
        service_revision=revision_hash(OLD),
        deployments=(deployment(OLD, ready=1), deployment(NEW, ready=0)),
    )

    assert plan(observed, DEFAULTS, NOW).serving == revision_hash(OLD)


def test_lost_status_and_service_are_made_up_for_by_whoever_is_ready() -> None:
    observed = pool(NEW, deployments=(deployment(OLD, ready=2, size=2), deployment(NEW, ready=1)))

    assert plan(observed, DEFAULTS, NOW).serving == revision_hash(NEW)
    cold = pool(NEW, deployments=(deployment(OLD, ready=2, size=2), deployment(NEW, ready=0)))
    assert plan(cold, DEFAULTS, NOW).serving == revision_hash(OLD)


class TestSizes:
    @pytest.mark.parametrize(
        ("wanted", "live", "written"),
        [(None, 1, None), (None, 3, 1), (4, 4, None), (4, 2, 4), (0, 2, 0)],
    )
    def test_fixed_size_is_written_where_it_differs(self, wanted, live, written) -> None:
        of = spec(**({} if wanted is None else {"replicas": wanted}))
        observed = pool(
            of,
            status=serving(of),
            service_revision=revision_hash(of),
            deployments=(deployment(of, size=live, ready=live),),
        )

        assert sizes(plan(observed, DEFAULTS, NOW)) == {revision_hash(of): written}

    @pytest.mark.parametrize(
        ("live", "autoscaled", "written"),
        [
            (4, False, None),
            (1, False, 2),
            (9, False, 6),
            (9, True, None),
            (1, True, None),
            (0, True, 2),
        ],
        ids=[
            "kept when autoscaling starts",
            "raised to the minimum",
            "lowered to the maximum",
            "left to the autoscaler above its maximum",
            "left to the autoscaler below its minimum",
            "an autoscaler never leaves zero",
        ],
    )
    def test_autoscaled_size(self, live, autoscaled, written) -> None:
        of = spec(autoscaling={"minReplicas": 2, "maxReplicas": 6})
        observed = pool(
            of,
            status=serving(of),
            service_revision=revision_hash(of),
            autoscaler_revision=revision_hash(of) if autoscaled else None,
            deployments=(deployment(of, size=live, ready=live),),
        )

        assert sizes(plan(observed, DEFAULTS, NOW)) == {revision_hash(of): written}

    def test_successor_gets_the_present_size_of_an_autoscaled_pool(self) -> None:
        scaling = {"minReplicas": 1, "maxReplicas": 8}
        old, new = spec(autoscaling=scaling), spec(autoscaling=scaling, drainSeconds=60)
        observed = pool(
            new,
            status=serving(old),
            service_revision=revision_hash(old),
            autoscaler_revision=revision_hash(old),
            deployments=(deployment(old, size=5, ready=5), deployment(new, size=2, ready=2)),
        )

        decided = plan(observed, DEFAULTS, NOW)

        assert decided.serving == revision_hash(old)
        assert sizes(decided) == {revision_hash(old): None, revision_hash(new): 5}

    def test_successor_that_has_the_requests_does_not_shrink_with_the_idle_predecessor(self) -> None:
        """Killed between Service and autoscaler, and away for longer than the scale-down window."""
        scaling = {"minReplicas": 1, "maxReplicas": 5}
        old, new = spec(autoscaling=scaling), spec(autoscaling=scaling, drainSeconds=60)
        observed = pool(
            new,
            status=serving(old),
            service_revision=revision_hash(new),
            autoscaler_revision=revision_hash(old),
            deployments=(deployment(old, size=1, ready=1), deployment(new, size=4, ready=4)),
        )

        decided = plan(observed, DEFAULTS, NOW)

        assert decided.serving == revision_hash(new)
        assert sizes(decided)[revision_hash(new)] is None

    def test_going_back_to_a_fixed_size_keeps_that_size(self) -> None:
        of = spec(replicas=4)
        observed = pool(
            of,
            status=serving(of),
            service_revision=revision_hash(of),
            autoscaler_revision=revision_hash(of),
            deployments=(deployment(of, size=4, ready=4),),
        )

        assert sizes(plan(observed, DEFAULTS, NOW)) == {revision_hash(of): None}


def test_paused_pool_is_not_touched() -> None:
    paused = spec(paused=True, drainSeconds=60)
    observed = pool(
        paused,
        status=serving(OLD),
        service_revision=revision_hash(OLD),
        deployments=(deployment(OLD, ready=1),),
    )

    decided = plan(observed, DEFAULTS, NOW)

    assert not decided.acts
    assert decided.serving == revision_hash(OLD)
    assert decided.revisions == decided.remove == ()


def test_spec_that_makes_no_sense_is_not_acted_on() -> None:
    decided = plan(pool(None, invalid="spec.worker: unknown"), DEFAULTS, NOW)

    assert not decided.acts
    assert "spec.worker" in decided.problems[0].message


AUTOSCALER = ChildKey("HorizontalPodAutoscaler", "pool")
POLICY = ChildKey("NetworkPolicy", "pool")
COPIES = (ChildKey("NetworkPolicy", "copy"), ChildKey("Service", "copy"))


@pytest.mark.parametrize(
    ("scaled", "policies", "unwanted"),
    [
        (True, True, ()),
        (False, True, (AUTOSCALER,)),
        (True, False, (POLICY,)),
        (False, False, (AUTOSCALER, POLICY)),
    ],
)
def test_what_nothing_asks_for_any_more_is_unwanted(scaled, policies, unwanted) -> None:
    """A copy that somebody made of a child is left to garbage collection."""
    of = spec(autoscaling={"maxReplicas": 3}) if scaled else OLD
    live = {key: {"metadata": {}} for key in (AUTOSCALER, POLICY, *COPIES)}

    assert plan(pool(of, children=live), replace(DEFAULTS, network_policy=policies), NOW).unwanted == unwanted


def test_copy_of_an_autoscaler_would_size_what_another_one_sizes() -> None:
    copy = ChildKey("HorizontalPodAutoscaler", "copy")
    scaled = spec(autoscaling={"maxReplicas": 3})

    assert plan(pool(scaled, children={copy: {"metadata": {}}}), DEFAULTS, NOW).unwanted == (copy,)


def test_what_is_deleted_already_is_not_deleted_again() -> None:
    gone = {AUTOSCALER: {"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}}

    assert plan(pool(OLD, children=gone), DEFAULTS, NOW).unwanted == ()


def test_paused_pool_keeps_what_it_has() -> None:
    live = {AUTOSCALER: {"metadata": {}}}

    assert plan(pool(spec(paused=True), children=live), DEFAULTS, NOW).unwanted == ()
