"""What an update's steps mean for a pool's children."""

from dataclasses import replace
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pod, pool, serving, spec
from zerolayer_operator.api.revision import FrozenAnchor, FrozenInputs, revision_hash
from zerolayer_operator.api.update_status import FailedUpdate, Step, UpdateStatus
from zerolayer_operator.decide.plan import Plan, pinned, plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.decide.sizing import fixed_size
from zerolayer_operator.decide.traffic import Pinned, Traffic
from zerolayer_operator.decide.update_facts import settings_hash
from zerolayer_operator.decide.update_plan import real_share
from zerolayer_operator.decide.wire import later, wire_time
from zerolayer_operator.observe.state import ObservedPool, Problem, Wishes

CANARY = {"update": {"soak": "10m"}}
OTHER = {"worker": {"device": "cpu", "maxBatchSize": 4}}
GATEWAY = {"routing": {"gateway": {"parentRefs": [{"name": "web"}]}}}
SCALED = {"autoscaling": {"minReplicas": 2, "maxReplicas": 20}}
FACTS = FrozenInputs(image="worker:1", anchor=FrozenAnchor(version="v1", digest=f"sha256:{'1' * 64}"))
NEWER = FrozenInputs(image="worker:1", anchor=FrozenAnchor(version="v2", digest=f"sha256:{'2' * 64}"))


def updating(
    step: Step | None,
    *,
    size: int = 12,
    green: int | None = 2,
    ready: int | None = None,
    blue_frozen: FrozenInputs = FACTS,
    green_frozen: FrozenInputs = NEWER,
    told: dict[str, Any] | None = None,
    by_gateway: bool = True,
    **fields: Any,
) -> ObservedPool:
    """A pool of which a revision is being replaced."""
    routed = GATEWAY if by_gateway else {}
    sized = {} if "autoscaling" in fields else {"replicas": size}
    old = spec(**CANARY, **routed, **sized, **fields)
    new = spec(**CANARY, **routed, **sized, **OTHER, **fields)
    blue, green_name = revision_hash(old), revision_hash(new)
    after = step == Step.RETAIN
    status = serving(new if after else old)
    if step is not None:
        record = {
            "step": step,
            "from_revision": blue,
            "to_revision": green_name,
            "started_at": wire_time(NOW),
            "step_started_at": wire_time(NOW),
            "soak_started_at": wire_time(NOW),
            "switched_at": wire_time(NOW) if after else None,
        }
        status = status.model_copy(update={"update": UpdateStatus(**{**record, **(told or {})})})
    deployments = [deployment(old, size, size, frozen=blue_frozen)]
    if green is not None:
        made = deployment(new, green, green if ready is None else ready, frozen=green_frozen)
        deployments.append(made)
    return pool(
        new,
        status=status,
        deployments=tuple(deployments),
        service_revision=green_name if after else blue,
        autoscaler_revision=green_name if after else blue,
        routable=by_gateway,
    )


def decided(seen: ObservedPool) -> Plan:
    return plan(seen, DEFAULTS, NOW)


def sizes(of: Plan, seen: ObservedPool) -> dict[str, int]:
    """Sizes after the plan: blue's and green's."""
    names = {item.revision: name for item, name in zip(seen.deployments, ("blue", "green"), strict=False)}
    return {
        names.get(item.revision, "green"): item.size
        if item.size is not None
        else (item.live.size if item.live else 1)
        for item in of.revisions
    }


def test_change_makes_a_canary_of_the_size_for_its_share() -> None:
    seen = updating(None, green=None)

    found = decided(seen)

    assert found.update is not None
    assert found.update.step == Step.PREPARE
    assert sizes(found, seen) == {"blue": 12, "green": 2}
    assert found.serving == seen.deployments[0].revision
    assert found.traffic == Traffic(seen.deployments[0].revision, found.wanted)


def test_revision_that_never_worked_is_replaced_without_a_canary() -> None:
    seen = updating(None, green=None)
    cold = replace(
        seen,
        deployments=(replace(seen.deployments[0], ready=0),),
        status=serving(spec(), warm=False).model_copy(
            update={"serving_revision": seen.deployments[0].revision}
        ),
    )

    assert decided(cold).update is None
    assert decided(cold).serving == decided(cold).wanted


@pytest.mark.parametrize(
    ("step", "told", "expected"),
    [
        (Step.PREPARE, {}, {"blue": 12, "green": 2}),
        (Step.SOAK, {}, {"blue": 12, "green": 2}),
        (Step.PROMOTE, {"weight": 10}, {"blue": 12, "green": 12}),
        (Step.RETAIN, {}, {"blue": 12, "green": 12}),
        (Step.ROLL_BACK, {"raise_to": 14, "reason": "R"}, {"blue": 12, "green": 2}),
    ],
)
def test_sizes_of_a_fixed_pool(step: Step, told: dict[str, Any], expected: dict[str, int]) -> None:
    seen = updating(step, told=told, green=12 if step == Step.RETAIN else 2)

    assert sizes(decided(seen), seen) == expected


@pytest.mark.parametrize(
    ("step", "told", "blue", "green", "expected", "floor"),
    [
        (Step.PREPARE, {}, 6, 1, {"blue": 6, "green": 1}, 6),
        (Step.SOAK, {}, 12, 1, {"blue": 12, "green": 2}, 2),
        (Step.SOAK, {}, 6, 3, {"blue": 6, "green": 3}, 2),
        (Step.PROMOTE, {"weight": 10}, 9, 1, {"blue": 9, "green": 10}, 9),
        (Step.RETAIN, {}, 9, 10, {"blue": 9, "green": 10}, 2),
        (Step.ROLL_BACK, {"raise_to": 10, "reason": "R"}, 9, 1, {"blue": 9, "green": 1}, 10),
    ],
)
def test_sizes_and_floor_of_an_autoscaled_pool(
    step: Step, told: dict[str, Any], blue: int, green: int, expected: dict[str, int], floor: int
) -> None:
    ready = 0 if step == Step.PREPARE else green
    seen = updating(step, size=blue, green=green, ready=ready, told=told, **SCALED)

    found = pinned(decided(seen))

    assert sizes(found, seen) == expected
    assert found.scaling is not None
    assert found.scaling.floor == floor


def test_gateway_gets_weight_and_what_requests_may_name() -> None:
    seen = updating(Step.SOAK)
    blue, green = (item.revision for item in seen.deployments)

    found = decided(seen).traffic

    assert found == Traffic(blue, green, 10, (Pinned(green, "v2"), Pinned(blue, "v1")))


def test_versions_that_are_the_same_tell_nothing_apart() -> None:
    seen = updating(Step.SOAK, green_frozen=FACTS)
    blue, green = (item.revision for item in seen.deployments)

    found = decided(seen).traffic

    assert found == Traffic(blue, green, 10, (Pinned(green), Pinned(blue)))


def test_canary_without_a_ready_worker_gets_nothing() -> None:
    seen = updating(Step.SOAK, ready=0)

    found = decided(seen).traffic

    assert found is not None
    assert (found.weight, [item.revision for item in found.pinned]) == (0, [seen.deployments[0].revision])


def test_after_the_switch_conversations_stay_with_blue() -> None:
    seen = updating(Step.RETAIN, green=12)
    blue, green = (item.revision for item in seen.deployments)

    assert decided(seen).traffic == Traffic(green, pinned=(Pinned(green, "v2"), Pinned(blue, "v1")))


def test_roll_back_leads_all_requests_to_blue_at_once() -> None:
    seen = updating(Step.ROLL_BACK, told={"raise_to": 14, "reason": "R"})

    assert decided(seen).traffic == Traffic(seen.deployments[0].revision)


@pytest.mark.parametrize(("replicas", "both", "share"), [(1, False, 50), (3, False, 25), (12, True, 14)])
def test_without_a_gateway_the_share_of_workers_decides(replicas: int, both: bool, share: int) -> None:
    green = 2 if replicas == 12 else 1
    seen = updating(Step.SOAK, size=replicas, green=green, by_gateway=False)

    found = decided(seen)

    assert found.traffic is not None
    assert found.traffic.both == both
    assert found.update is not None
    assert (found.update.share, found.update.weight) == (share, share if both else 0)


def test_real_share_of_nobody_is_none() -> None:
    seen = updating(Step.SOAK, by_gateway=False, ready=0, size=0)

    assert seen.spec is not None
    assert seen.status.update is not None
    assert real_share(seen, seen.spec, seen.status.update) == 0


def failed(seen: ObservedPool, *, retained_s: int = 600, **status: Any) -> ObservedPool:
    assert seen.spec is not None
    told = FailedUpdate(
        revision=revision_hash(seen.spec),
        settings=settings_hash(seen.spec.update),
        reason="ErrorRateHigher",
        message="5 % against 0 %",
        failed_at=wire_time(NOW),
        retained_until=later(NOW, retained_s),
    )
    return replace(seen, status=seen.status.model_copy(update={"failed": told, **status}))


def test_failed_revision_keeps_one_worker_for_a_while() -> None:
    seen = failed(updating(None, green=3))

    found = decided(seen)

    assert found.update is None
    assert not found.updating
    assert sizes(found, seen) == {"blue": 12, "green": 1}
    assert found.remove == ()
    assert [item.reason for item in found.problems] == ["ErrorRateHigher"]


def test_failed_revision_goes_after_its_retention_and_is_not_made_again() -> None:
    seen = failed(updating(None, green=1), retained_s=-1)

    assert [item.revision for item in decided(seen).remove] == [seen.deployments[1].revision]
    gone = replace(seen, deployments=seen.deployments[:1])
    assert [item.revision for item in decided(gone).revisions] == [seen.deployments[0].revision]


def test_workers_that_refuse_their_anchor_end_the_update() -> None:
    seen = updating(Step.PREPARE, ready=0, told={"soak_started_at": None})
    refuses = Problem("AnchorNotFinite", "the worker in pod p refuses its anchor: tensor a")
    green = seen.deployments[1].revision
    seen = replace(seen, pods=(pod(green, problem=refuses),))

    found = decided(seen)

    assert found.update is not None
    assert (found.update.step, found.update.reason) == (Step.ROLL_BACK, "AnchorNotFinite")


def test_workers_without_room_are_waited_for() -> None:
    seen = updating(Step.PREPARE, ready=0)
    green = replace(seen.deployments[1], deadline_exceeded=True)
    no_room = pod(green.revision, problem=Problem("Unschedulable", "no node"))
    seen = replace(seen, deployments=(seen.deployments[0], green), pods=(no_room,))

    found = decided(seen)

    assert found.update is not None
    assert found.update.step == Step.PREPARE


def test_workers_that_had_their_time_end_the_update() -> None:
    seen = updating(Step.PREPARE, ready=0)
    green = replace(seen.deployments[1], deadline_exceeded=True)

    found = decided(replace(seen, deployments=(seen.deployments[0], green)))

    assert found.update is not None
    assert (found.update.step, found.update.reason) == (Step.ROLL_BACK, "WarmupTimedOut")


def test_second_change_drops_the_first_canary_and_leaves_blue_alone() -> None:
    seen = updating(Step.SOAK)
    third = spec(**CANARY, **GATEWAY, replicas=12, worker={"device": "cpu", "maxBatchSize": 2})

    found = decided(replace(seen, spec=third))

    assert found.update is not None
    assert (found.update.step, found.update.to_revision) == (Step.PREPARE, revision_hash(third))
    assert found.traffic == Traffic(seen.deployments[0].revision, revision_hash(third))
    # Its end is written down first: who looks after an operator that was killed has to know its anchor.
    assert found.remove == ()
    after = replace(seen, spec=third, status=report(seen, found, (), NOW))
    assert [item.revision for item in decided(after).remove] == [seen.deployments[1].revision]


@pytest.mark.parametrize(("green", "share"), [(1, 25), (2, 40)])
def test_growth_of_what_takes_over_does_not_ask_for_more(green: int, share: int) -> None:
    """Without a gateway its own growth makes its share larger; what it needs goes by that of the soak."""
    seen = updating(Step.PROMOTE, size=3, green=green, told={"weight": 20}, by_gateway=False)

    found = decided(seen)

    assert found.update is not None
    assert (found.update.share, found.update.weight) == (share, 20)


def test_third_revision_is_not_made_while_blue_is_retained() -> None:
    seen = updating(Step.RETAIN, green=12)
    third = spec(**CANARY, **GATEWAY, replicas=12, worker={"device": "cpu", "maxBatchSize": 2})

    found = decided(replace(seen, spec=third))

    assert {item.revision for item in found.revisions} == {item.revision for item in seen.deployments}
    assert found.remove == ()


def test_immediate_strategy_amid_a_soak_takes_over_as_soon_as_it_is_warm() -> None:
    seen = updating(Step.SOAK, green=12)
    at_once = spec(update={"strategy": "Immediate"}, **GATEWAY, replicas=12, **OTHER)

    found = decided(replace(seen, spec=at_once))

    assert (found.update, found.serving) == (None, seen.deployments[1].revision)
    assert fixed_size(at_once) == 12


def test_blue_is_raised_once_the_size_is_written_down() -> None:
    """An operator that is killed before that would go by the raised size, and raise it again."""
    seen = replace(
        updating(Step.SOAK, told={"weight": 25}, autoscaling={"minReplicas": 2, "maxReplicas": 30}),
        wishes=Wishes(
            roll_back=revision_hash(
                spec(**CANARY, **GATEWAY, **OTHER, autoscaling={"minReplicas": 2, "maxReplicas": 30})
            )
        ),
    )
    found = decided(seen)
    assert found.update is not None
    assert (found.update.step, found.update.raise_to, found.floor) == (Step.ROLL_BACK, 16, 12)

    after = replace(seen, status=report(seen, found, (), NOW))

    assert decided(after).floor == 16
