"""The pod template of a worker."""

from dataclasses import replace
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, spec
from zerolayer_operator.api.revision import FrozenInputs
from zerolayer_operator.build.pod import pod_template

FROZEN = FrozenInputs(image="worker:1", model_commit="c" * 40)


def template(defaults=DEFAULTS, **fields: Any) -> dict[str, Any]:
    return pod_template("pool", "abc", spec(**fields), FROZEN, defaults)


def container(**fields: Any) -> dict[str, Any]:
    return template(**fields)["spec"]["containers"][0]


def source(**kind: Any) -> dict[str, Any]:
    return {"model": {"name": "tiny", "source": kind}}


def flags(**fields: Any) -> dict[str, str]:
    arguments = container(**fields)["args"]
    assert arguments[0] == "serve"
    return dict(argument.removeprefix("--").split("=", 1) for argument in arguments[1:])


def test_worker_is_told_everything_the_spec_says() -> None:
    found = flags(
        worker={
            "device": "cpu",
            "maxModelLen": 1024,
            "memoryUtilization": 0.8,
            "cudaGraphs": False,
            "maxBatchSize": 4,
            "dtype": "float32",
            "quantization": "int8",
        },
        intents={"default": "creative", "allowed": ["creative", "deterministic"]},
        warmup={"prompt": "-x", "maxTokens": 8, "timeoutSeconds": 60, "settleRatio": 2.5},
        drainSeconds=33,
    )
    assert found == {
        "builtin": "tiny",
        "model-name": "tiny",
        "port": "8000",
        "ops-port": "8081",
        "device": "cpu",
        "dtype": "float32",
        "quantization": "int8",
        "max-model-len": "1024",
        "memory-utilization": "0.8",
        "cuda-graphs": "false",
        "max-batch-size": "4",
        "default-intent": "creative",
        "allowed-intents": "creative,deterministic",
        "revision": "abc",
        "warmup-prompt": "-x",
        "warmup-max-tokens": "8",
        "warmup-timeout-seconds": "60",
        "warmup-settle-ratio": "2.5",
        "drain-seconds": "33",
    }


def test_prompt_that_looks_like_a_variable_arrives_as_it_was_written() -> None:
    assert flags(warmup={"prompt": "$(HOME) costs $5"})["warmup-prompt"] == "$$(HOME) costs $$5"


@pytest.mark.parametrize(
    ("kind", "argument", "volume"),
    [
        ({"builtin": {"name": "tiny"}}, "--builtin=tiny", None),
        (
            {"persistentVolumeClaim": {"claimName": "c", "path": "a/b"}},
            "--model-path=/model/a/b",
            {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
        ),
        (
            {"hostPath": {"path": "/srv/m"}},
            "--model-path=/model",
            {"hostPath": {"path": "/srv/m", "type": "Directory"}},
        ),
        (
            {"image": {"reference": "m:1", "path": "w", "pullPolicy": "Always"}},
            "--model-path=/model/w",
            {"image": {"reference": "m:1", "pullPolicy": "Always"}},
        ),
        ({"huggingFace": {"repo": "a/b"}}, "--model-path=/model", {"emptyDir": {}}),
    ],
    ids=["builtin", "claim", "hostPath", "image", "huggingFace"],
)
def test_model_comes_from_its_source(kind, argument, volume) -> None:
    pod = template(**source(**kind))["spec"]
    worker = pod["containers"][0]
    volumes = {item["name"]: item for item in pod["volumes"]}
    mounts = {item["name"]: item for item in worker["volumeMounts"]}

    assert worker["args"][1] == argument
    assert volumes.get("model") == (None if volume is None else {"name": "model", **volume})
    if volume is not None:
        assert mounts["model"] == {"name": "model", "mountPath": "/model", "readOnly": True}


def test_hub_model_is_fetched_at_its_commit_with_its_token() -> None:
    reference = {"name": "hf", "key": "token"}
    kind = {"huggingFace": {"repo": "a/b", "revision": "main", "tokenSecretRef": reference}}
    (fetch,) = template(**source(**kind))["spec"]["initContainers"]

    assert fetch["image"] == "worker:1"
    assert fetch["args"] == ["model", "fetch", "--repo=a/b", f"--revision={'c' * 40}", "--dest=/model"]
    assert {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}} in fetch["env"]
    assert {"name": "model", "mountPath": "/model"} in fetch["volumeMounts"]


def test_model_image_is_copied_where_nodes_cannot_mount_images() -> None:
    kind = {"image": {"reference": "m:1", "path": "weights"}}
    pod = template(replace(DEFAULTS, image_volumes=False), **source(**kind))["spec"]
    (copy,) = pod["initContainers"]

    assert (copy["image"], copy["command"]) == ("m:1", ["cp", "-R", "/weights/.", "/model"])
    assert pod["containers"][0]["args"][1] == "--model-path=/model"


@pytest.mark.parametrize("image_volumes", [True, False], ids=["mounted", "copied"])
def test_model_image_is_the_frozen_one(image_volumes: bool) -> None:
    frozen = FrozenInputs(image="worker:1", model_image="m:1@sha256:aa")
    of = spec(**source(image={"reference": "m:1", "path": "weights"}))
    pod = pod_template("pool", "abc", of, frozen, replace(DEFAULTS, image_volumes=image_volumes))["spec"]

    used = [item["image"]["reference"] for item in pod["volumes"] if "image" in item]
    used += [item["image"] for item in pod.get("initContainers", ())]
    assert used == ["m:1@sha256:aa"]


def test_pod_is_restricted() -> None:
    pod = template(**source(huggingFace={"repo": "a/b"}))["spec"]

    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    for each in (*pod["containers"], *pod["initContainers"]):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }


@pytest.mark.parametrize("seconds", [10, 11, 600, 7199])
def test_startup_probe_lasts_exactly_the_warmup_timeout(seconds: int) -> None:
    probe = container(warmup={"timeoutSeconds": seconds})["startupProbe"]

    assert probe["periodSeconds"] * probe["failureThreshold"] == seconds
    assert probe["httpGet"] == {"path": "/startupz", "port": "ops"}


def test_drain_comes_before_the_end() -> None:
    pod = template(terminationGracePeriodSeconds=200, drainSeconds=100)["spec"]

    assert pod["terminationGracePeriodSeconds"] == 200
    command = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert command == ["zerolayer-worker", "drain", "--ops-port", "8081"]


@pytest.mark.parametrize(
    ("worker", "resources"),
    [
        ({"device": "cpu"}, {"requests": {"cpu": "500m"}}),
        (
            {"device": "cpu", "resources": {"requests": {"memory": "1Gi"}}},
            {"requests": {"memory": "1Gi", "cpu": "500m"}},
        ),
        ({"device": "cpu", "resources": {"limits": {"cpu": 2}}}, {"limits": {"cpu": 2}}),
        ({"device": "cpu", "resources": {"requests": {"cpu": "1"}}}, {"requests": {"cpu": "1"}}),
        ({"device": "gpu"}, {"limits": {"nvidia.com/gpu": "1"}}),
        (
            {"device": "gpu", "resourceName": "amd.com/gpu", "count": 4, "resources": {"limits": {"cpu": 2}}},
            {"limits": {"cpu": 2, "amd.com/gpu": "4"}},
        ),
    ],
)
def test_resources_hold_what_the_device_needs(worker, resources) -> None:
    assert container(worker=worker)["resources"] == resources


def test_gpu_worker_runs_on_cuda() -> None:
    assert flags(worker={"device": "gpu"})["device"] == "cuda"


def test_all_keys_of_a_secret_or_one_of_them_are_mounted() -> None:
    whole = template(apiKeySecretRef={"name": "keys"})["spec"]
    one = template(apiKeySecretRef={"name": "keys", "key": "a"})["spec"]

    secrets = [item["secret"] for pod in (whole, one) for item in pod["volumes"] if "secret" in item]
    assert secrets == [
        {"secretName": "keys", "defaultMode": 0o440},
        {"secretName": "keys", "defaultMode": 0o440, "items": [{"key": "a", "path": "a"}]},
    ]
    assert "--api-key-dir=/var/run/zerolayer/api-keys" in whole["containers"][0]["args"]


def test_variables_of_the_user_win() -> None:
    env = container(worker={"device": "cpu", "env": [{"name": "HOME", "value": "/h"}]})["env"]

    assert env == [{"name": "HOME", "value": "/h"}]


def test_placement_is_handed_on_and_left_out_where_absent() -> None:
    worker = {
        "device": "cpu",
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "priorityClassName": "high",
        "imagePullSecrets": [{"name": "s"}],
        "podAnnotations": {"x": "y"},
    }
    made = template(worker=worker)

    fields = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName")
    for field in (*fields, "imagePullSecrets"):
        assert made["spec"][field] == worker[field]
        assert field not in template()["spec"]
    assert made["metadata"]["annotations"] == {"x": "y"}
    assert made["metadata"]["labels"]["zerolayer.dev/revision"] == "abc"


def test_images_and_policies() -> None:
    assert container()["image"] == "worker:1"
    assert container()["imagePullPolicy"] == "IfNotPresent"
    assert container(worker={"device": "cpu", "imagePullPolicy": "Never"})["imagePullPolicy"] == "Never"
