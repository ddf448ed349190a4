"""KEDA in place of a HorizontalPodAutoscaler: its objects, when they are made, and what is told of them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, serving, spec
from zerolayer_operator.api.prometheus import PrometheusSpec
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.build.children import children
from zerolayer_operator.decide import events
from zerolayer_operator.decide.conditions import wire_time
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.observe.prometheus_address import allowed_address
from zerolayer_operator.observe.state import ChildKey, ObservedPool, Problem

ADDRESS = "http://prometheus:9090"
WITH_KEDA = replace(DEFAULTS, keda=True, prometheus_addresses=(ADDRESS, "https://thanos/a/"))
HPA = ChildKey("HorizontalPodAutoscaler", "pool")
SCALED = ChildKey("ScaledObject", "pool")
AUTHENTICATION = ChildKey("TriggerAuthentication", "pool")
TOKEN = {"bearerTokenSecretRef": {"name": "prometheus", "key": "token"}}
CERTIFICATE = {"certificateSecretRef": {"name": "client"}}
CA = {"caSecretRef": {"name": "authority", "key": "ca.crt"}}


def by_keda(metric: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A spec's autoscaling."""
    return {"maxReplicas": 9, "provider": "KEDA", "metric": metric or {"type": "Utilization"}, **fields}


def by_hpa() -> dict[str, Any]:
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


def built(of: ObservedPool, defaults=WITH_KEDA) -> dict[ChildKey, dict[str, Any]]:
    made = children(of, plan(of, defaults), defaults)
    return {ChildKey(body["kind"], body["metadata"]["name"]): body for body in made}


def autoscalers(of: ObservedPool, defaults=WITH_KEDA) -> set[str]:
    return {key.kind for key in built(of, defaults) if key in {HPA, SCALED, AUTHENTICATION}}


def told(of: ObservedPool, defaults=WITH_KEDA, now=NOW) -> Any:
    status = report(of, plan(of, defaults), (), now)
    return next(item for item in status.conditions or () if item.type == "Degraded")


class TestObjects:
    @pytest.mark.parametrize(
        ("metric", "counter", "threshold"),
        [
            ({"type": "Utilization"}, "zero_layer_busy_share_seconds_total", "70"),
            ({"type": "Concurrency", "target": 6}, "zero_layer_waiting_request_seconds_total", "6"),
            ({"type": "TokenRate", "target": 900}, "zero_layer_output_tokens_total", "900"),
        ],
    )
    def test_prometheus_is_asked_about_the_serving_workers(self, metric, counter, threshold) -> None:
        of = observed(by_keda(metric))
        (trigger,) = built(of)[SCALED]["spec"]["triggers"]

        assert (trigger["type"], trigger["metricType"]) == ("prometheus", "AverageValue")
        assert trigger["metadata"]["serverAddress"] == ADDRESS
        assert trigger["metadata"]["threshold"] == threshold
        assert f"{counter}{{namespace=" in trigger["metadata"]["query"]
        assert f'zerolayer_dev_revision="{plan(of, WITH_KEDA).serving}"' in trigger["metadata"]["query"]
        assert "authenticationRef" not in trigger

    def test_no_data_is_not_taken_for_no_load(self) -> None:
        (trigger,) = built(observed(by_keda()))[SCALED]["spec"]["triggers"]

        assert trigger["metadata"]["ignoreNullValues"] == "false"

    def test_query_of_the_users_is_handed_on(self) -> None:
        query = 'sum(rate(x{path=~"/v1/.*"}[1m]))'
        of = observed(by_keda({"type": "PromQL", "target": 3, "query": query}))
        (trigger,) = built(of)[SCALED]["spec"]["triggers"]

        assert trigger["metadata"]["query"] == query

    def test_cpu_use_needs_no_prometheus(self) -> None:
        of = observed(by_keda({"type": "CPU", "target": 60}))
        (trigger,) = built(of, replace(WITH_KEDA, prometheus_addresses=()))[SCALED]["spec"]["triggers"]

        assert trigger == {
            "type": "cpu",
            "metricType": "Utilization",
            "metadata": {"value": "60", "containerName": "zerolayer-worker"},
        }

    def test_bounds_behaviour_and_target(self) -> None:
        scale_up = {"stabilizationWindowSeconds": 0}
        down = {"fixedWindow": "90s"}
        of = observed(by_keda(minReplicas=2, scaleDown=down, scaleUp=scale_up))
        made = built(of)[SCALED]
        spec_of = made["spec"]

        assert made["apiVersion"] == "keda.sh/v1alpha1"
        assert (spec_of["minReplicaCount"], spec_of["maxReplicaCount"]) == (2, 9)
        assert spec_of["scaleTargetRef"]["name"] == f"pool-{plan(of, WITH_KEDA).serving}"
        assert spec_of["advanced"] == {
            "restoreToOriginalReplicaCount": False,
            "horizontalPodAutoscalerConfig": {
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 90}, "scaleUp": scale_up}
            },
        }

    @pytest.mark.parametrize(
        ("credentials", "modes", "parameters"),
        [
            (TOKEN, "bearer", {"bearerToken": ("prometheus", "token")}),
            (
                {**TOKEN, "tls": CA},
                "bearer",
                {"bearerToken": ("prometheus", "token"), "ca": ("authority", "ca.crt")},
            ),
            ({"tls": CERTIFICATE}, "tls", {"cert": ("client", "tls.crt"), "key": ("client", "tls.key")}),
            (
                {**TOKEN, "tls": {**CA, **CERTIFICATE}},
                "tls,bearer",
                {
                    "bearerToken": ("prometheus", "token"),
                    "ca": ("authority", "ca.crt"),
                    "cert": ("client", "tls.crt"),
                    "key": ("client", "tls.key"),
                },
            ),
        ],
        ids=["token", "token and authority", "certificate", "all"],
    )
    def test_credentials_are_named_never_read(self, credentials, modes, parameters) -> None:
        made = built(observed(by_keda(prometheus={"address": "https://thanos/a", **credentials})))
        (trigger,) = made[SCALED]["spec"]["triggers"]
        found = made[AUTHENTICATION]["spec"]["secretTargetRef"]

        assert trigger["metadata"]["authModes"] == modes
        assert trigger["authenticationRef"] == {"name": "pool"}
        assert {item["parameter"]: (item["name"], item["key"]) for item in found} == parameters

    def test_credentials_come_before_what_names_them(self) -> None:
        kinds = [key.kind for key in built(observed(by_keda(prometheus=TOKEN)))]

        assert kinds.index("TriggerAuthentication") < kinds.index("ScaledObject")


@pytest.mark.parametrize(
    ("named", "allowed", "expected"),
    [
        (None, ["http://a", "http://b"], "http://a"),
        ("http://b", ["http://a", "http://b"], "http://b"),
        ("http://b/", ["http://a", "http://b"], "http://b"),
        ("http://b", ["http://a", "http://b/"], "http://b"),
        (None, [], "PrometheusMissing"),
        ("http://c", ["http://a"], "PrometheusNotAllowed"),
        ("http://a", [], "PrometheusNotAllowed"),
        ("http://a/x", ["http://a"], "PrometheusNotAllowed"),
        ("http://a:9090", ["http://a"], "PrometheusNotAllowed"),
        ("https://a", ["http://a"], "PrometheusNotAllowed"),
        ("http://a.evil", ["http://a"], "PrometheusNotAllowed"),
    ],
)
def test_only_addresses_of_the_installation(named: str | None, allowed: list[str], expected: str) -> None:
    for prometheus in (PrometheusSpec(address=named), *([None] if named is None else [])):
        found = allowed_address(prometheus, allowed)
        assert (found.reason if isinstance(found, Problem) else found) == expected


class TestWhatKeepsItFromBeingMade:
    @pytest.mark.parametrize(
        ("fields", "defaults", "reason", "remedy"),
        [
            ({}, replace(WITH_KEDA, keda=False), "KedaNotEnabled", "keda.enabled=true"),
            ({"scalable_by_keda": False}, WITH_KEDA, "KedaMissing", "install KEDA"),
            ({}, replace(WITH_KEDA, prometheus_addresses=()), "PrometheusMissing", "prometheus.addresses"),
        ],
    )
    def test_it_is_told_with_the_remedy(self, fields, defaults, reason, remedy) -> None:
        of = observed(by_keda(), **fields)
        condition = told(of, defaults)

        assert (condition.status, condition.reason) == ("True", reason)
        assert remedy in condition.message
        assert autoscalers(of, defaults) == set()

    def test_address_that_is_not_allowed_reaches_no_object(self) -> None:
        of = observed(by_keda(prometheus={"address": "http://elsewhere", **TOKEN}))

        assert told(of).reason == "PrometheusNotAllowed"
        assert autoscalers(of) == set()
        assert "http://elsewhere" not in str(built(of))

    @pytest.mark.parametrize("live", [HPA, SCALED])
    def test_what_is_there_goes_on(self, live: ChildKey) -> None:
        """A pool whose author mistypes an address keeps being sized."""
        of = observed(by_keda(prometheus={"address": "http://elsewhere"}), live, AUTHENTICATION)

        assert plan(of, WITH_KEDA).unwanted == ()

    def test_pool_of_its_own_autoscaler_needs_none_of_it(self) -> None:
        of = observed(by_hpa(), scalable_by_keda=False)

        assert told(of, DEFAULTS).status == "False"
        assert autoscalers(of, DEFAULTS) == {"HorizontalPodAutoscaler"}


class TestSwitching:
    @pytest.mark.parametrize(
        ("autoscaling", "live", "unwanted", "made"),
        [
            (by_keda(), (), (), {"ScaledObject"}),
            (by_keda(), (HPA,), (HPA,), set()),
            (by_keda(), (SCALED,), (), {"ScaledObject"}),
            (by_keda(prometheus=TOKEN), (SCALED,), (), {"ScaledObject", "TriggerAuthentication"}),
            (by_keda(), (SCALED, AUTHENTICATION), (AUTHENTICATION,), {"ScaledObject"}),
            (by_hpa(), (SCALED, AUTHENTICATION), (SCALED, AUTHENTICATION), set()),
            (by_hpa(), (), (), {"HorizontalPodAutoscaler"}),
            (None, (SCALED, AUTHENTICATION), (SCALED, AUTHENTICATION), set()),
            (None, (HPA,), (HPA,), set()),
        ],
        ids=[
            "new with keda",
            "to keda",
            "steady with keda",
            "credentials come",
            "credentials go",
            "from keda",
            "keda is gone",
            "to a fixed size from keda",
            "to a fixed size",
        ],
    )
    def test_one_autoscaler_at_a_time(self, autoscaling, live, unwanted, made) -> None:
        of = observed(autoscaling, *live)

        assert plan(of, WITH_KEDA).unwanted == unwanted
        assert autoscalers(of) == made

    @pytest.mark.parametrize("live", [(), (HPA,), (SCALED,)])
    @pytest.mark.parametrize("autoscaling", [by_keda(), by_hpa(), None], ids=["keda", "hpa", "fixed"])
    def test_size_is_left_alone_on_the_way(self, autoscaling, live) -> None:
        sized_by = revision_hash(spec()) if live else None
        decided = plan(observed(autoscaling, *live, autoscaler_revision=sized_by), WITH_KEDA)

        assert [item.size for item in decided.revisions] == [None]

    def test_own_autoscaler_waits_while_keda_lets_go(self) -> None:
        dying = {"kind": "ScaledObject", "metadata": {"uid": "u", "deletionTimestamp": wire_time(NOW)}}
        of = observed(by_hpa())
        of = replace(of, children={**of.children, SCALED: dying})

        assert plan(of, WITH_KEDA).unwanted == ()
        assert autoscalers(of) == set()
        assert told(of, now=NOW + timedelta(minutes=1)).status == "False"
        held = told(of, now=NOW + timedelta(minutes=3))
        assert held.reason == "ScaledObjectHeld"
        assert "kubectl patch scaledobject pool" in held.message

    def test_copies_go_whoever_the_provider_is(self) -> None:
        copies = (ChildKey("HorizontalPodAutoscaler", "copy"), ChildKey("ScaledObject", "copy"))

        for autoscaling in (by_keda(), by_keda(prometheus={"address": "http://elsewhere"}), by_hpa(), None):
            assert plan(observed(autoscaling, *copies), WITH_KEDA).unwanted == copies

    def test_two_autoscalers_that_hold_each_other_still_are_told(self) -> None:
        condition = {"type": "ScalingActive", "status": "False", "reason": "AmbiguousSelector"}
        since = {"lastTransitionTime": wire_time(NOW)}
        hpa = {"metadata": {"uid": "u"}, "status": {"conditions": [{**condition, **since}]}}
        of = observed(by_hpa())
        of = replace(of, children={**of.children, HPA: hpa})

        assert told(of, now=NOW + timedelta(minutes=1)).status == "False"
        assert told(of, now=NOW + timedelta(minutes=3)).reason == "AnotherAutoscaler"


QUERY = {"type": "PromQL", "target": 5, "query": "sum(rate(requests[1m])) or vector(0)"}


def sleepy(**fields: Any) -> dict[str, Any]:
    return by_keda(QUERY, minReplicas=2, scaleToZero=True, **fields)


def test_credentials_for_the_operator_alone_are_not_told_to_keda() -> None:
    flat = {"mode": "Flatness"}
    of = observed(by_keda({"type": "CPU"}, prometheus=TOKEN, scaleDown=flat))

    assert autoscalers(of) == {"ScaledObject"}
    assert "authenticationRef" not in built(of)[SCALED]["spec"]["triggers"][0]


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
        made = built(observed(sleepy(scaleDown={"fixedWindow": "7m"})))[SCALED]["spec"]

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
        decided = plan(self.asleep(autoscaling, *live), defaults)

        assert [item.size for item in decided.revisions] == [size]

    def test_new_pool_shows_first_that_it_works(self) -> None:
        of = spec(autoscaling=sleepy())
        decided = plan(pool(of, scalable_by_keda=True), WITH_KEDA)

        assert [item.size for item in decided.revisions] == [2]

    def test_update_of_a_sleeping_pool_is_warmed_before_it_may_sleep(self) -> None:
        old = spec(autoscaling=sleepy())
        of = self.asleep(sleepy(), SCALED)
        changed = spec(autoscaling=sleepy(), drainSeconds=60)
        cold = deployment(changed, size=0)

        for deployments in (of.deployments, (*of.deployments, cold)):
            decided = plan(replace(of, spec=changed, deployments=deployments), WITH_KEDA)
            assert decided.serving == revision_hash(old)
            assert {item.revision: item.size for item in decided.revisions} == {
                revision_hash(old): None,
                revision_hash(changed): 2,
            }

    def test_sleeping_pool_is_ready(self) -> None:
        of = self.asleep(sleepy(), SCALED)
        status = report(of, plan(of, WITH_KEDA), (), NOW)
        ready = next(item for item in status.conditions or () if item.type == "Ready")

        assert (status.phase, status.ready) == ("Ready", "0/0")
        assert (ready.status, ready.reason) == ("True", "ScaledToZero")
        assert "spec.autoscaling.metric.query" in ready.message

    def test_pool_that_wakes_is_not_ready_before_its_workers_are(self) -> None:
        of = spec(autoscaling=sleepy())
        awake = self.asleep(sleepy(), SCALED, deployments=(deployment(of, size=2, ready=1),))
        status = report(awake, plan(awake, WITH_KEDA), (), NOW)

        assert status.ready == "1/2"
        assert next(item for item in status.conditions or () if item.type == "Ready").status == "False"


class TestEvents:
    def reasons(self, of: ObservedPool, defaults=WITH_KEDA) -> dict[str, str]:
        return {item.reason: item.message for item in events.planned(of, plan(of, defaults))}

    def test_start_names_the_object(self) -> None:
        assert (
            "a ScaledObject keeps 1 to 9 workers" in self.reasons(observed(by_keda()))["AutoscalingStarted"]
        )

    def test_start_is_not_told_of_what_is_not_made(self) -> None:
        assert self.reasons(observed(by_keda()), DEFAULTS) == {}

    @pytest.mark.parametrize(("autoscaling", "live"), [(by_keda(), HPA), (by_hpa(), SCALED)])
    def test_replacement_is_not_called_an_end(self, autoscaling, live: ChildKey) -> None:
        found = self.reasons(observed(autoscaling, live))

        assert found["AutoscalerReplaced"].startswith(f"the {live.kind} is deleted")
        assert "AutoscalingStopped" not in found

    def test_end_is_told(self) -> None:
        assert "the ScaledObject is deleted" in self.reasons(observed(None, SCALED))["AutoscalingStopped"]
