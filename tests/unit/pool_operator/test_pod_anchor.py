"""How the pod template of a worker brings its knowledge anchor."""

from dataclasses import replace
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, pool, spec
from zerolayer_operator.api.revision import FrozenInputs
from zerolayer_operator.build.anchor import anchor_copy
from zerolayer_operator.build.container import TMP_MOUNT
from zerolayer_operator.build.pod import pod_template
from zerolayer_operator.decide.plan import PlannedCopy

DIGEST = f"sha256:{'1' * 64}"
FROZEN = FrozenInputs(image="worker:1", anchor_copy="pool-abc-anchor")
CONFIG_MAP = {"configMap": {"name": "facts", "key": "mine"}}
CLAIM = {"persistentVolumeClaim": {"claimName": "c", "path": "a/b"}}
IMAGE = {"image": {"reference": "a:1", "path": "d/b.st", "pullPolicy": "Always"}}
COPYING = replace(DEFAULTS, image_volumes=False)


def pod(source: dict[str, Any], defaults=DEFAULTS, **fields: Any) -> dict[str, Any]:
    of = spec(anchor={"version": "v1.2", "digest": DIGEST, "source": source}, **fields)
    return pod_template("pool", "abc", of, FROZEN, defaults)["spec"]


def flags(of: dict[str, Any]) -> dict[str, str]:
    given = (argument.partition("=") for argument in of["containers"][0]["args"])
    return {flag: value for flag, _, value in given if flag.startswith("--anchor")}


def volumes(of: dict[str, Any]) -> dict[str, Any]:
    return {
        item["name"]: {key: value for key, value in item.items() if key != "name"} for item in of["volumes"]
    }


def test_pool_without_an_anchor_has_nothing_of_it() -> None:
    bare = pod_template("pool", "abc", spec(), FROZEN, DEFAULTS)["spec"]

    assert flags(bare) == {}
    assert "anchor" not in volumes(bare)
    assert "initContainers" not in bare


@pytest.mark.parametrize(
    ("source", "defaults", "file", "volume"),
    [
        (CONFIG_MAP, DEFAULTS, "bundle.safetensors", {"configMap": {"name": "pool-abc-anchor"}}),
        (CLAIM, DEFAULTS, "a/b", {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}}),
        (IMAGE, DEFAULTS, "d/b.st", {"image": {"reference": "a:1", "pullPolicy": "Always"}}),
        (IMAGE, COPYING, "bundle.safetensors", {"emptyDir": {}}),
    ],
    ids=["configMap", "claim", "image", "copied image"],
)
def test_anchor_comes_from_its_source(source, defaults, file: str, volume: dict[str, Any]) -> None:
    found = pod(source, defaults)
    mounts = {item["name"]: item for item in found["containers"][0]["volumeMounts"]}

    assert flags(found) == {
        "--anchor-path": f"/anchor/{file}",
        "--anchor-version": "v1.2",
        "--anchor-digest": DIGEST,
    }
    assert volumes(found)["anchor"] == volume
    assert mounts["anchor"] == {"name": "anchor", "mountPath": "/anchor", "readOnly": True}


def test_anchor_is_copied_out_of_its_image_where_nodes_cannot_mount_images() -> None:
    (copy,) = pod(IMAGE, COPYING)["initContainers"]

    assert (copy["name"], copy["image"], copy["imagePullPolicy"]) == ("copy-anchor", "a:1", "Always")
    assert copy["command"] == ["cp", "/d/b.st", "/anchor/bundle.safetensors"]
    assert {"name": "anchor", "mountPath": "/anchor"} in copy["volumeMounts"]
    assert TMP_MOUNT in copy["volumeMounts"]


@pytest.mark.parametrize("defaults", [DEFAULTS, COPYING], ids=["mounted", "copied"])
def test_image_of_the_anchor_is_the_frozen_one(defaults) -> None:
    """A tag may move: a worker that starts later would get another bundle, and refuse it."""
    of = spec(anchor={"version": "v1", "digest": DIGEST, "source": IMAGE})
    frozen = FrozenInputs(image="worker:1", anchor_image="a:1@sha256:aa")
    found = pod_template("pool", "abc", of, frozen, defaults)["spec"]

    used = [item["image"]["reference"] for item in found["volumes"] if "image" in item]
    used += [item["image"] for item in found.get("initContainers", ())]
    assert used == ["a:1@sha256:aa"]


def test_policy_is_kubernetes_own_where_none_is_named() -> None:
    unsaid = {"image": {"reference": "a:1", "path": "b"}}
    (copy,) = pod(unsaid, COPYING)["initContainers"]

    assert volumes(pod(unsaid))["anchor"] == {"image": {"reference": "a:1"}}
    assert "imagePullPolicy" not in copy


@pytest.mark.parametrize("kind", [CLAIM, IMAGE], ids=["claim", "image"])
@pytest.mark.parametrize("defaults", [DEFAULTS, COPYING], ids=["mounted", "copied"])
def test_path_that_looks_like_a_variable_arrives_as_it_was_written(kind, defaults) -> None:
    """Kubernetes expands variables in arguments and commands: two dollars stand for one."""
    ((name, source),) = kind.items()
    found = pod({name: {**source, "path": "$(HOME)/$5"}}, defaults)
    copied = [container["command"][1] for container in found.get("initContainers", ())]

    assert copied or flags(found)["--anchor-path"] == "/anchor/$$(HOME)/$$5"
    assert copied in ([], ["/$$(HOME)/$$5"])


def test_model_and_anchor_are_both_copied() -> None:
    model = {"name": "m", "source": {"image": {"reference": "m:1", "path": "$w"}}}
    found = pod(IMAGE, COPYING, model=model)

    assert [item["name"] for item in found["initContainers"]] == ["copy-model", "copy-anchor"]
    assert found["initContainers"][0]["command"] == ["cp", "-R", "/$$w/.", "/model"]
    assert {"tmp", "model", "anchor"} == set(volumes(found))


@pytest.mark.parametrize("source", [CONFIG_MAP, CLAIM, IMAGE])
def test_pod_with_an_anchor_is_restricted(source: dict[str, Any]) -> None:
    found = pod(source, COPYING)

    assert not any("hostPath" in volume for volume in found["volumes"])
    for each in (*found["containers"], *found.get("initContainers", ())):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        # A quota may ask every container for them.
        assert "resources" in each
        assert each["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_copy_of_a_bundle_cannot_be_altered_and_goes_with_the_pool() -> None:
    made = anchor_copy(pool(spec()), PlannedCopy("pool-abc-anchor", "abc", DIGEST, "d2VpZ2h0cw=="))
    metadata = made["metadata"]

    assert (made["kind"], metadata["name"], metadata["namespace"]) == (
        "ConfigMap",
        "pool-abc-anchor",
        "default",
    )
    assert made["immutable"] is True
    assert made["binaryData"] == {"bundle.safetensors": "d2VpZ2h0cw=="}
    assert metadata["annotations"] == {"zerolayer.dev/anchor-digest": DIGEST}
    assert metadata["labels"]["zerolayer.dev/pool"] == "pool"
    assert metadata["labels"]["zerolayer.dev/revision"] == "abc"
    assert [owner["uid"] for owner in metadata["ownerReferences"]] == ["uid-pool"]
