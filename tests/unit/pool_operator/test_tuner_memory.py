"""What stays in memory of each pool whose load is followed."""

from typing import Any

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pod, pool, serving, spec
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.observe.load_sources import LoadSources
from zerolayer_operator.observe.state import ChildKey
from zerolayer_operator.tuning import Tuner
from zerolayer_operator.workqueue import PoolKey

KEY = PoolKey("default", "pool")
NAMED = {"metadata": {"name": "pool", "managedFields": ["much"]}}
HPA: dict[str, Any] = {**NAMED, "kind": "HorizontalPodAutoscaler", "spec": {"minReplicas": 1}, "status": {}}
SERVICE: dict[str, Any] = {**NAMED, "kind": "Service", "spec": {}}


async def test_only_what_looks_need_is_kept_of_a_pool_and_of_its_autoscaler() -> None:
    of = spec(autoscaling={"maxReplicas": 3})
    observed = pool(
        of,
        status=serving(of),
        raw_status={"much": 1},
        deployments=(deployment(of, 2, 2),),
        pods=(pod(of),),
        children={ChildKey(body["kind"], "pool"): body for body in (HPA, SERVICE)},
        autoscaler=HPA,
    )
    no_server: Any = None
    tuner = Tuner(LoadSources(no_server, 1, ()), lambda _: None)

    await tuner.tuned(observed, plan(observed, DEFAULTS, NOW))
    tuner.saw_autoscaler(KEY, {**HPA, "status": {"currentReplicas": 2}})

    followed = tuner._pools[KEY]
    kept = followed.pool
    assert kept.children == {
        ChildKey("HorizontalPodAutoscaler", "pool"): {
            "kind": "HorizontalPodAutoscaler",
            "spec": {"minReplicas": 1},
            "status": {},
        }
    }
    assert (kept.raw_status, kept.deployments[0].template) == ({}, {})
    assert followed.hpa["status"] == {"currentReplicas": 2}
    assert "metadata" not in followed.hpa
    await tuner.close()
