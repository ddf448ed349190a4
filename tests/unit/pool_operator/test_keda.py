"""KEDA in place of a HorizontalPodAutoscaler: its objects, when they are made, and what is told of them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, spec
from zerolayer_dev.testing.observed_keda import (
    ADDRESS,
    AUTHENTICATION,
    HPA,
    SCALED,
    WITH_KEDA,
    built,
    by_hpa,
    by_keda,
    observed,
)
from zerolayer_operator.api.model import SecretKeyReference
from zerolayer_operator.api.prometheus import PrometheusSpec, PrometheusTls
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.decide import events
from zerolayer_operator.decide.conditions import wire_time
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.observe.prometheus_address import allowed_address
from zerolayer_operator.observe.state import ChildKey, ObservedPool, Problem

TOKEN = {"bearerTokenSecretRef": {"name": "prometheus", "key": "token"}}
CERTIFICATE = {"certificateSecretRef": {"name": "client"}}
CA = {"caSecretRef": {"name": "authority", "key": "ca.crt"}}


def autoscalers(of: ObservedPool, defaults=WITH_KEDA) -> set[str]:
    return {key.kind for key in built(of, defaults) if key in {HPA, SCALED, AUTHENTICATION}}


def told(of: ObservedPool, defaults=WITH_KEDA, now=NOW) -> Any:
    status = report(of, plan(of, defaults, NOW), (), now)
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
        assert f'zerolayer_dev_revision="{plan(of, WITH_KEDA, NOW).serving}"' in trigger["metadata"]["query"]
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
        down = {"mode": "Fixed", "fixedWindow": "90s"}
        of = observed(by_keda(minReplicas=2, scaleDown=down, scaleUp=scale_up))
        made = built(of)[SCALED]
        spec_of = made["spec"]

        assert made["apiVersion"] == "keda.sh/v1alpha1"
        assert (spec_of["minReplicaCount"], spec_of["maxReplicaCount"]) == (2, 9)
        assert spec_of["scaleTargetRef"]["name"] == f"pool-{plan(of, WITH_KEDA, NOW).serving}"
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
        prometheus = {"address": "https://thanos/a", **credentials}
        made = built(observed(by_keda(prometheus=prometheus, scaleDown={"mode": "Fixed"})))
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


@pytest.mark.parametrize(
    ("address", "expected"), [("https://a", "https://a"), ("http://a", "PrometheusNotAllowed")]
)
def test_certificates_are_not_ignored_where_the_address_is_the_installation_s(
    address: str, expected: str
) -> None:
    tls = PrometheusTls(ca_secret_ref=SecretKeyReference(name="s", key="ca"))
    found = allowed_address(PrometheusSpec(tls=tls), [address])
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

        assert plan(of, WITH_KEDA, NOW).unwanted == ()

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

        assert plan(of, WITH_KEDA, NOW).unwanted == unwanted
        assert autoscalers(of) == made

    @pytest.mark.parametrize("live", [(), (HPA,), (SCALED,)])
    @pytest.mark.parametrize("autoscaling", [by_keda(), by_hpa(), None], ids=["keda", "hpa", "fixed"])
    def test_size_is_left_alone_on_the_way(self, autoscaling, live) -> None:
        sized_by = revision_hash(spec()) if live else None
        decided = plan(observed(autoscaling, *live, autoscaler_revision=sized_by), WITH_KEDA, NOW)

        assert [item.size for item in decided.revisions] == [None]

    def test_own_autoscaler_waits_while_keda_lets_go(self) -> None:
        dying = {"kind": "ScaledObject", "metadata": {"uid": "u", "deletionTimestamp": wire_time(NOW)}}
        of = observed(by_hpa())
        of = replace(of, children={**of.children, SCALED: dying})

        assert plan(of, WITH_KEDA, NOW).unwanted == ()
        assert autoscalers(of) == set()
        assert told(of, now=NOW + timedelta(minutes=1)).status == "False"
        held = told(of, now=NOW + timedelta(minutes=3))
        assert held.reason == "ScaledObjectHeld"
        assert "kubectl patch scaledobject pool" in held.message

    def test_own_autoscaler_waits_until_what_keda_made_is_gone(self) -> None:
        """It goes a moment after its ScaledObject, as garbage."""
        lingers = frozenset({ChildKey("HorizontalPodAutoscaler", "keda-hpa-pool")})

        assert autoscalers(observed(by_hpa(), foreign=lingers)) == set()
        assert autoscalers(observed(by_keda(), foreign=lingers)) == {"ScaledObject"}

    def test_copies_go_whoever_the_provider_is(self) -> None:
        copies = (ChildKey("HorizontalPodAutoscaler", "copy"), ChildKey("ScaledObject", "copy"))

        for autoscaling in (by_keda(), by_keda(prometheus={"address": "http://elsewhere"}), by_hpa(), None):
            assert plan(observed(autoscaling, *copies), WITH_KEDA, NOW).unwanted == copies

    def test_two_autoscalers_that_hold_each_other_still_are_told(self) -> None:
        condition = {"type": "ScalingActive", "status": "False", "reason": "AmbiguousSelector"}
        since = {"lastTransitionTime": wire_time(NOW)}
        hpa = {"metadata": {"uid": "u"}, "status": {"conditions": [{**condition, **since}]}}
        of = observed(by_hpa())
        of = replace(of, children={**of.children, HPA: hpa})

        assert told(of, now=NOW + timedelta(minutes=1)).status == "False"
        assert told(of, now=NOW + timedelta(minutes=3)).reason == "AnotherAutoscaler"


def test_credentials_for_the_operator_alone_are_not_told_to_keda() -> None:
    flat = {"mode": "Flatness"}
    of = observed(by_keda({"type": "CPU"}, prometheus=TOKEN, scaleDown=flat))

    assert autoscalers(of) == {"ScaledObject"}
    assert "authenticationRef" not in built(of)[SCALED]["spec"]["triggers"][0]


class TestEvents:
    def reasons(self, of: ObservedPool, defaults=WITH_KEDA) -> dict[str, str]:
        return {item.reason: item.message for item in events.planned(of, plan(of, defaults, NOW))}

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
