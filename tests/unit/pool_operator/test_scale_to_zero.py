"""Pools that KEDA gives no worker at all while nobody asks for one."""

from dataclasses import replace
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, spec
from zerolayer_dev.testing.observed_keda import (
    HPA,
    QUERY,
    SCALED,
    WITH_KEDA,
    built,
    by_hpa,
    by_keda,
    observed,
)
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.observe.state import ChildKey, ObservedPool


def sleepy(**fields: Any) -> dict[str, Any]:
    return by_keda(QUERY, minReplicas=2, scaleToZero=True, **fields)


class TestScaleToZero:
    """Of a pool of at least two workers while it is awake."""

    def asleep(self, autoscaling: dict[str, Any], *live: ChildKey, **fields: Any) -> ObservedPool:
        of = spec(autoscaling=autoscaling)
        return observed(
            autoscaling,
            *live,
            **{
                "autoscaler_revision": revision_hash(of) if live else None,
                "deployments": (deployment(of, size=0),),
                **fields,
            },
        )

    def test_last_worker_goes_after_the_window_and_never_at_the_first_look(self) -> None:
        made = built(observed(sleepy(scaleDown={"mode": "Fixed", "fixedWindow": "7m"})))[SCALED]["spec"]

        assert (made["idleReplicaCount"], made["minReplicaCount"]) == (0, 2)
        assert made["cooldownPeriod"] == made["initialCooldownPeriod"] == 420
        assert made["pollingInterval"] == 15

    def test_it_is_off_unless_asked_for(self) -> None:
        made = built(observed(by_keda(QUERY)))[SCALED]["spec"]

        assert {"idleReplicaCount", "cooldownPeriod", "initialCooldownPeriod"}.isdisjoint(made)

    @pytest.mark.parametrize(
        ("autoscaling", "live", "defaults", "size"),
        [
            (sleepy(), (SCALED,), WITH_KEDA, None),
            (sleepy(), (), WITH_KEDA, 2),
            (sleepy(), (), DEFAULTS, None),
            (by_keda(QUERY, minReplicas=2), (SCALED,), WITH_KEDA, 2),
            ({**by_hpa(), "minReplicas": 2}, (HPA,), WITH_KEDA, 2),
        ],
        ids=[
            "it is KEDA's doing",
            "nothing would wake it",
            "KEDA may be out of sight",
            "no more wanted",
            "never by an autoscaler of its own",
        ],
    )
    def test_pool_without_workers_is_left_asleep(self, autoscaling, live, defaults, size) -> None:
        decided = plan(self.asleep(autoscaling, *live), defaults, NOW)

        assert [item.size for item in decided.revisions] == [size]

    def test_new_pool_shows_first_that_it_works(self) -> None:
        of = spec(autoscaling=sleepy())
        decided = plan(pool(of, scalable_by_keda=True), WITH_KEDA, NOW)

        assert [item.size for item in decided.revisions] == [2]

    def test_update_of_a_sleeping_pool_is_warmed_before_it_may_sleep(self) -> None:
        old = spec(autoscaling=sleepy())
        of = self.asleep(sleepy(), SCALED)
        changed = spec(autoscaling=sleepy(), drainSeconds=60)
        cold = deployment(changed, size=0)

        for deployments in (of.deployments, (*of.deployments, cold)):
            decided = plan(replace(of, spec=changed, deployments=deployments), WITH_KEDA, NOW)
            assert decided.serving == revision_hash(old)
            assert {item.revision: item.size for item in decided.revisions} == {
                revision_hash(old): None,
                revision_hash(changed): 2,
            }

    def test_sleeping_pool_is_ready(self) -> None:
        of = self.asleep(sleepy(), SCALED)
        status = report(of, plan(of, WITH_KEDA, NOW), (), NOW)
        ready = next(item for item in status.conditions or () if item.type == "Ready")

        assert (status.phase, status.ready) == ("Ready", "0/0")
        assert (ready.status, ready.reason) == ("True", "ScaledToZero")
        assert "spec.autoscaling.metric.query" in ready.message

    def test_pool_that_wakes_is_not_ready_before_its_workers_are(self) -> None:
        of = spec(autoscaling=sleepy())
        awake = self.asleep(sleepy(), SCALED, deployments=(deployment(of, size=2, ready=1),))
        status = report(awake, plan(awake, WITH_KEDA, NOW), (), NOW)

        assert status.ready == "1/2"
        assert next(item for item in status.conditions or () if item.type == "Ready").status == "False"
