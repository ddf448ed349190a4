"""When an update's golden set is asked, how its Job is made, and when that goes."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing import golden
from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, serving, spec
from zerolayer_operator.api import names
from zerolayer_operator.api.golden import GoldenReport, read_report
from zerolayer_operator.api.kinds import JOB, NETWORK_POLICY
from zerolayer_operator.api.revision import FrozenInputs, revision_hash
from zerolayer_operator.api.update_status import Step, UpdateStatus
from zerolayer_operator.build.children import children
from zerolayer_operator.build.golden import BUILTIN_PATH
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.golden import AGAIN
from zerolayer_operator.decide.plan import Plan, plan
from zerolayer_operator.decide.wire import wire_time
from zerolayer_operator.observe.state import ChildKey, ObservedGolden, ObservedPool, Problem
from zerolayer_worker.config import DEFAULT_BUILTIN_DIR

GOLDEN = {"soak": "10m", "golden": {"configMap": {"name": "facts", "key": "a.jsonl"}}}
NEWER = {"warmup": {"maxTokens": 8}}
RUN = "this one"
WAITS = ObservedGolden(RUN, unknown="not yet")
REPORT = read_report(json.dumps(golden.report()))


def updating(step: Step | None, seen: ObservedGolden | None = WAITS, **fields: Any) -> ObservedPool:
    """A pool that is being updated, or has just been, with what was observed of its golden set."""
    fields = {"update": GOLDEN, **fields}
    old, new = spec(**fields), spec(**{**NEWER, **fields})
    blue, green = revision_hash(old), revision_hash(new)
    status = serving(old)
    if step is not None:
        record = UpdateStatus(
            step=step,
            from_revision=blue,
            to_revision=green,
            started_at=wire_time(NOW),
            step_started_at=wire_time(NOW),
            soak_started_at=wire_time(NOW),
        )
        status = status.model_copy(update={"update": record})
    made = (deployment(old, 1, 1), deployment(new, 1, 1, frozen=FrozenInputs(image="worker:2")))
    found = pool(new, status=status, deployments=made, service_revision=blue, golden=seen)
    if seen is not None and seen.job is not None:
        found = with_children(found, golden.job(name_of(found), RUN))
    return found


def name_of(found: ObservedPool) -> str:
    return names.golden_name("pool", found.deployments[1].revision)


def with_children(found: ObservedPool, *bodies: dict[str, Any]) -> ObservedPool:
    more = {ChildKey(body["kind"], body["metadata"]["name"]): body for body in bodies}
    return replace(found, children={**found.children, **more})


def policy(name: str, revision: str) -> dict[str, Any]:
    labels = {names.LABEL_GOLDEN: "pool", names.LABEL_REVISION: revision}
    return {"kind": "NetworkPolicy", "metadata": {"name": name, "uid": "p", "labels": labels}}


def decided(found: ObservedPool, defaults: Defaults = DEFAULTS, later: timedelta = timedelta()) -> Plan:
    return plan(found, defaults, NOW + later)


def objects(found: ObservedPool, defaults: Defaults = DEFAULTS) -> dict[str, dict[str, Any]]:
    """The Job and its policy by their kinds."""
    made = children(found, decided(found, defaults), defaults)
    return {body["kind"]: body for body in made if names.LABEL_GOLDEN in body["metadata"]["labels"]}


def done(**fields: Any) -> GoldenReport:
    return read_report(json.dumps(golden.report(**fields)))


@pytest.mark.parametrize(
    ("step", "seen", "made"),
    [
        (Step.SOAK, WAITS, {"Job", "NetworkPolicy"}),
        (Step.AWAIT_PROMOTION, WAITS, {"Job", "NetworkPolicy"}),
        (Step.PROMOTE, WAITS, set()),
        (Step.ROLL_BACK, WAITS, set()),
        (Step.RETAIN, WAITS, set()),
        (Step.SOAK, None, set()),
        (None, WAITS, set()),
        (Step.SOAK, replace(WAITS, problem=Problem("GoldenConfigMapNotFound", "none")), set()),
        (Step.SOAK, ObservedGolden(RUN, "uid"), {"NetworkPolicy"}),
        (Step.PROMOTE, ObservedGolden(RUN, "uid"), {"NetworkPolicy"}),
        (Step.RETAIN, ObservedGolden(RUN, "uid", REPORT), {"NetworkPolicy"}),
    ],
)
def test_what_is_made(step: Step | None, seen: ObservedGolden | None, made: set[str]) -> None:
    """Once in an update, when both revisions answer; what is there stays until the update is over."""
    found = updating(step, seen)
    assert set(objects(found)) == made
    assert not [key for key in decided(found).unwanted if key.kind == "Job"]


def test_the_first_look_of_a_soak_makes_it() -> None:
    found = updating(Step.PREPARE)
    plan_of_it = decided(found)
    assert plan_of_it.update is not None
    assert plan_of_it.update.step == Step.SOAK
    assert set(objects(found)) == {"Job", "NetworkPolicy"}


def test_without_a_set_nothing_is_asked() -> None:
    assert objects(updating(Step.SOAK, None, update={"soak": "10m"})) == {}


def test_another_update_is_asked_anew() -> None:
    """The Job of one that ended has the name of the new one, where that goes to the same revision again."""
    found = updating(Step.SOAK)
    stale = with_children(found, golden.job(name_of(found), "another one"))
    assert set(objects(stale)) == set()
    assert ChildKey(JOB.kind, name_of(found)) in decided(stale).unwanted


@pytest.mark.parametrize("step", [None, Step.SOAK])
def test_what_others_left_goes(step: Step | None) -> None:
    leftovers = [golden.job("pool-0123456789-golden", "old"), policy("pool-0123456789-golden", "0123456789")]
    found = with_children(updating(step), *leftovers)
    gone = {ChildKey(body["kind"], body["metadata"]["name"]) for body in leftovers}
    assert gone <= set(decided(found).unwanted)


def test_copies_and_other_objects_stay() -> None:
    copy = golden.job("pool-0123456789-golden", "old")
    copy["metadata"]["name"] = "mine"
    other = golden.job("pool-0123456789-golden", "old", labels={names.LABEL_POOL: "pool"})
    assert decided(with_children(updating(None), copy, other)).unwanted == ()


def test_policies_go_where_the_installation_has_none() -> None:
    found = updating(Step.SOAK, ObservedGolden(RUN, "uid"))
    found = with_children(found, policy(name_of(found), found.deployments[1].revision))
    assert ChildKey(NETWORK_POLICY.kind, name_of(found)) not in decided(found).unwanted
    without = replace(DEFAULTS, network_policy=False)
    assert ChildKey(NETWORK_POLICY.kind, name_of(found)) in decided(found, without).unwanted
    assert set(objects(found, without)) == set()


@pytest.mark.parametrize(
    ("seen", "later", "again"),
    [
        (ObservedGolden(RUN, "uid", lost=True), timedelta(), True),
        (ObservedGolden(RUN, "uid", done(), NOW), timedelta(days=1), False),
        (ObservedGolden(RUN, "uid", done(green={"hits": 7, "errors": 1}), NOW), timedelta(), False),
        (ObservedGolden(RUN, "uid", done(green={"hits": 7, "errors": 1}), NOW), AGAIN, True),
        (ObservedGolden(RUN, "uid", done(blue={"hits": 7, "errors": 1}), NOW), AGAIN, True),
        (ObservedGolden(RUN, "uid", unknown="failed"), timedelta(days=1), False),
    ],
)
def test_when_it_is_asked_again(seen: ObservedGolden, later: timedelta, again: bool) -> None:
    """Where the report is gone, or has gaps; a Job that failed stays, for people to look at."""
    found = updating(Step.SOAK, seen)
    assert (ChildKey(JOB.kind, name_of(found)) in decided(found, later=later).unwanted) is again


@pytest.mark.parametrize(
    ("step", "told"), [(Step.PREPARE, True), (Step.SOAK, True), (Step.RETAIN, False), (None, False)]
)
def test_a_missing_set_is_told(step: Step | None, told: bool) -> None:
    problem = Problem("GoldenConfigMapNotFound", "it is not there")
    found = updating(step, replace(WAITS, problem=problem))
    assert (problem in decided(found).problems) is told


def job_of(**fields: Any) -> dict[str, Any]:
    return objects(updating(Step.SOAK, **fields))["Job"]


def pod_of(**fields: Any) -> dict[str, Any]:
    return job_of(**fields)["spec"]["template"]["spec"]


def flags_of(**fields: Any) -> dict[str, str]:
    arguments = pod_of(**fields)["containers"][0]["args"]
    assert arguments[:2] == ["golden", "run"]
    return dict(argument.removeprefix("--").split("=", 1) for argument in arguments[2:])


def test_the_job_asks_both_revisions_with_the_canarys_image() -> None:
    found = updating(Step.SOAK)
    blue, green = (item.revision for item in found.deployments)
    container = pod_of()["containers"][0]
    assert container["image"] == "worker:2"
    assert flags_of() == {
        "set": "/golden/a.jsonl",
        "blue": f"http://pool-{blue}.default.svc",
        "green": f"http://pool-{green}.default.svc",
        "model": f"{BUILTIN_PATH}/tiny",
    }
    assert BUILTIN_PATH == DEFAULT_BUILTIN_DIR
    volumes = {volume["name"]: volume for volume in pod_of()["volumes"]}
    assert volumes["golden"]["configMap"] == {
        "name": "facts",
        "items": [{"key": "a.jsonl", "path": "a.jsonl"}],
    }


def test_the_job_runs_once_and_not_for_ever() -> None:
    made = job_of()
    assert made["metadata"]["name"] == name_of(updating(Step.SOAK))
    assert made["metadata"]["annotations"][names.ANNOTATION_GOLDEN_RUN] == RUN
    assert made["spec"]["backoffLimit"] == 2
    assert made["spec"]["activeDeadlineSeconds"] == 1800
    assert "ttlSecondsAfterFinished" not in made["spec"]
    assert pod_of()["restartPolicy"] == "Never"
    assert job_of(update={**GOLDEN, "soak": "2m"})["spec"]["activeDeadlineSeconds"] == 600
    assert job_of(update={**GOLDEN, "soak": "48h"})["spec"]["activeDeadlineSeconds"] == 6 * 3600


def test_its_pod_is_no_worker() -> None:
    """Neither Services nor policies, budgets or scrapes of the pool select it."""
    labels = job_of()["spec"]["template"]["metadata"]["labels"]
    assert names.LABEL_POOL not in labels
    assert names.LABEL_REVISION not in labels
    found = updating(Step.SOAK)
    for body in children(found, decided(found), DEFAULTS):
        selector = body.get("spec", {}).get("selector") or body.get("spec", {}).get("podSelector") or {}
        wanted = selector.get("matchLabels", selector)
        if wanted and names.LABEL_GOLDEN not in body["metadata"]["labels"]:
            assert not wanted.items() <= labels.items(), body["metadata"]["name"]


def test_its_pod_meets_the_restricted_level() -> None:
    pod = pod_of()
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    context = pod["containers"][0]["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False


def test_it_needs_no_accelerator() -> None:
    amounts = {"cpu": "2", "memory": "4Gi"}
    worker = {
        "device": "gpu",
        "count": 2,
        "resources": {"requests": amounts, "limits": {"memory": "8Gi", "example.com/nic": "1"}},
        "nodeSelector": {"a": "b"},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "affinity": {"podAntiAffinity": {}, "nodeAffinity": {"requiredDuringScheduling": {}}},
        "podAnnotations": {"sidecar.istio.io/inject": "false"},
    }
    pod = pod_of(worker=worker)
    assert pod["containers"][0]["resources"] == {"requests": amounts, "limits": {"memory": "8Gi"}}
    assert (pod["nodeSelector"], pod["affinity"]) == (
        {"a": "b"},
        {"nodeAffinity": {"requiredDuringScheduling": {}}},
    )
    assert "topologySpreadConstraints" not in pod
    annotations = job_of(worker=worker)["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"sidecar.istio.io/inject": "false"}


@pytest.mark.parametrize(("key", "file"), [(None, ""), ("one", "/one")])
def test_it_has_a_key_where_clients_need_one(key: str | None, file: str) -> None:
    reference = {"name": "keys", **({"key": key} if key else {})}
    path = "/var/run/zerolayer/api-keys"
    assert flags_of(apiKeySecretRef=reference)["api-key-file"] == path + file
    pod = pod_of(apiKeySecretRef=reference)
    assert path in {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert "keys" in {volume.get("secret", {}).get("secretName") for volume in pod["volumes"]}


@pytest.mark.parametrize(
    ("source", "folder", "fetched"),
    [
        ({"persistentVolumeClaim": {"claimName": "c", "path": "a/b"}}, "/model/a/b", False),
        ({"hostPath": {"path": "/data"}}, "/model", False),
        ({"image": {"reference": "m:1", "path": "w"}}, "/model/w", False),
        ({"huggingFace": {"repo": "a/b"}}, "/model", True),
    ],
)
def test_it_has_the_base_model_as_workers_have_it(source: dict[str, Any], folder: str, fetched: bool) -> None:
    fields = {"model": {"name": "tiny", "source": source}}
    assert flags_of(**fields)["model"] == folder
    pod = pod_of(**fields)
    assert "/model" in {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert bool(pod.get("initContainers")) is fetched


def test_its_pod_reaches_workers_and_names_alone() -> None:
    made = objects(updating(Step.SOAK))["NetworkPolicy"]["spec"]
    labels = job_of()["spec"]["template"]["metadata"]["labels"]
    assert made["podSelector"]["matchLabels"].items() <= labels.items()
    assert made["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in made
    names_rule, workers = made["egress"]
    assert {item["port"] for item in names_rule["ports"]} == {53}
    assert workers == {
        "to": [{"podSelector": {"matchLabels": {names.LABEL_POOL: "pool"}}}],
        "ports": [{"port": 8000, "protocol": "TCP"}],
    }
    hub: dict[str, Any] = {"model": {"name": "tiny", "source": {"huggingFace": {"repo": "a/b"}}}}
    assert objects(updating(Step.SOAK, **hub))["NetworkPolicy"]["spec"]["egress"][2] == {
        "ports": [{"port": 443, "protocol": "TCP"}]
    }
