"""Observed pools that KEDA sizes, made up for tests, and what is built of them."""

from dataclasses import replace
from typing import Any

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, serving, spec
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.build.children import children
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.observe.state import ChildKey, ObservedPool

ADDRESS = "http://prometheus:9090"
WITH_KEDA = replace(DEFAULTS, keda=True, prometheus_addresses=(ADDRESS, "https://thanos/a/"))
HPA = ChildKey("HorizontalPodAutoscaler", "pool")
SCALED = ChildKey("ScaledObject", "pool")
AUTHENTICATION = ChildKey("TriggerAuthentication", "pool")
QUERY = {"type": "PromQL", "target": 5, "query": "sum(rate(requests[1m])) or vector(0)"}


def by_keda(metric: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A spec's autoscaling."""
    return {"maxReplicas": 9, "provider": "KEDA", "metric": metric or {"type": "Utilization"}, **fields}


def by_hpa() -> dict[str, Any]:
    """The same with an autoscaler of its own."""
    return {"maxReplicas": 9}


def observed(autoscaling: dict[str, Any] | None, *live: ChildKey, **fields: Any) -> ObservedPool:
    """A pool that serves with four workers, among whose children are these."""
    of = spec(autoscaling=autoscaling) if autoscaling else spec(replicas=4)
    deployments = (deployment(of, size=4, ready=4),)
    base = pool(of, deployments=deployments)
    objects = {key: {"kind": key.kind, "metadata": {"uid": f"uid-{key.kind}"}} for key in live}
    values = {
        "deployments": deployments,
        "status": serving(of),
        "service_revision": revision_hash(of),
        "scalable_by_keda": True,
        "children": {**base.children, **objects},
    }
    return pool(of, **{**values, **fields})


def built(of: ObservedPool, defaults: Defaults = WITH_KEDA) -> dict[ChildKey, dict[str, Any]]:
    """The children that are made of a pool."""
    made = children(of, plan(of, defaults, NOW), defaults)
    return {ChildKey(body["kind"], body["metadata"]["name"]): body for body in made}
