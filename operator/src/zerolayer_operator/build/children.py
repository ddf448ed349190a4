"""All children that a plan stands for."""

from collections.abc import Iterator

from zerolayer_operator.api.queries import range_seconds
from zerolayer_operator.api.scaling import AutoscalingSpec, Provider
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.build.anchor import anchor_copy
from zerolayer_operator.build.deployment import new_deployment, same_deployment
from zerolayer_operator.build.golden import golden_job, golden_policy
from zerolayer_operator.build.keda import scaled_object, trigger_authentication
from zerolayer_operator.build.meta import Object
from zerolayer_operator.build.monitor import pod_monitor
from zerolayer_operator.build.routes import http_route
from zerolayer_operator.build.scaling import Setting, autoscaler, disruption_budget
from zerolayer_operator.build.services import (
    canary_service,
    metrics_service,
    network_policy,
    revision_service,
    service,
    service_account,
)
from zerolayer_operator.decide.autoscaling import PlannedScaling, may_apply
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.golden import PlannedGolden
from zerolayer_operator.decide.plan import Plan, PlannedRevision
from zerolayer_operator.decide.routing import gateway_of, revisions_with_services
from zerolayer_operator.decide.traffic import Traffic
from zerolayer_operator.observe.state import ChildKey, ObservedPool


def key_of(body: Object) -> ChildKey:
    """The key under which a child is observed."""
    return ChildKey(body["kind"], body["metadata"]["name"])


def children(pool: ObservedPool, decided: Plan, defaults: Defaults) -> tuple[Object, ...]:
    """The children in the order in which they are applied; none where the plan touches nothing."""
    spec, serving, traffic = decided.spec, decided.serving, decided.traffic
    if spec is None or serving is None or traffic is None:
        return ()
    objects = [service_account(pool)]
    if defaults.network_policy:
        objects.append(network_policy(pool, spec, defaults))
    objects += [anchor_copy(pool, item) for item in decided.copies]
    objects += [_deployment(pool, decided, item, defaults) for item in decided.revisions]
    objects += _routing(pool, decided, spec, traffic)
    objects += [service(pool, traffic.serving, both=traffic.both), metrics_service(pool)]
    if spec.autoscaling is not None and decided.scaling is not None and may_apply(pool, decided.scaling):
        objects += _autoscaler(pool, spec.autoscaling, decided.scaling, serving, defaults)
    objects.append(disruption_budget(pool, spec.disruption, serving))
    if pool.monitored:
        objects.append(pod_monitor(pool, defaults))
    if decided.golden is not None:
        objects += _golden(pool, spec, decided.golden, defaults)
    return tuple(objects)


def _routing(pool: ObservedPool, decided: Plan, spec: PoolSpec, traffic: Traffic) -> Iterator[Object]:
    """The Services of single revisions, and after them the route: it never names what is not there."""
    planned = (item.revision for item in decided.revisions)
    for revision in revisions_with_services(spec, traffic, planned):
        yield revision_service(pool, revision)
    if traffic.canary is not None:
        yield canary_service(pool, traffic.canary)
    gateway = gateway_of(pool, spec)
    if gateway is not None:
        yield http_route(pool, gateway, traffic)


def _golden(
    pool: ObservedPool, spec: PoolSpec, planned: PlannedGolden, defaults: Defaults
) -> Iterator[Object]:
    """The Job with the golden set is never changed: what it asks, it asks once."""
    if defaults.network_policy:
        yield golden_policy(pool, spec, planned)
    if planned.missing:
        yield golden_job(pool, spec, planned, defaults)


def _autoscaler(
    pool: ObservedPool, spec: AutoscalingSpec, planned: PlannedScaling, serving: str, defaults: Defaults
) -> Iterator[Object]:
    range_s = range_seconds(defaults.pod_monitor_interval)
    setting = Setting(planned.window_s, planned.floor, range_s, planned.idle_s, planned.one_by_one)
    if spec.provider == Provider.HPA:
        yield autoscaler(pool, spec, serving, setting)
        return
    if spec.credentials_for_keda is not None:
        yield trigger_authentication(pool, spec.credentials_for_keda)
    yield scaled_object(pool, spec, serving, setting, planned.address)


def _deployment(pool: ObservedPool, decided: Plan, item: PlannedRevision, defaults: Defaults) -> Object:
    if item.live is not None:
        return same_deployment(pool, item.live, pool.children[ChildKey("Deployment", item.live.name)])
    if decided.spec is None:
        raise ValueError("a new revision needs a spec")
    return new_deployment(pool, item.revision, decided.spec, item.frozen, defaults)
