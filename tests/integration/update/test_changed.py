"""What becomes of an update when something else changes amid its soak."""

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.pools import names
from zerolayer_dev.testing.simulated_answers import Answers, Quality
from zerolayer_dev.testing.update_pool import UpdatedPool

pytestmark = pytest.mark.promise("changed-mid-update")

Make = Callable[..., UpdatedPool]
LONG = {
    "strategy": "Canary",
    "soak": "20s",
    "maxSoak": "90s",
    "minSamples": 50,
    "blueRetention": "2s",
    "failedRetention": "2s",
}


def worker(value: str) -> dict[str, Any]:
    return {"device": "cpu", "env": [{"name": "A", "value": value}]}


@pytest.fixture
def pool(make: Make) -> UpdatedPool:
    made = make(replicas=9, worker=worker("1"), update=LONG)
    made.wait_workers(9)
    return made


def soaking(pool: UpdatedPool, **change: Any) -> tuple[str, str]:
    """Begins an update, and waits until it soaks; returns blue and green."""
    pool.change(**change)
    update = pool.wait_step("Soak")
    return update["fromRevision"], update["toRevision"]


def test_second_change_replaces_the_canary(pool: UpdatedPool, figures) -> None:
    """A second change of the spec amid the soak: another canary takes the place of the first; blue stays."""
    blue, first = soaking(pool, worker=worker("2"))
    uids = {pod["metadata"]["uid"] for pod in pool.pods(revision=blue)}
    pool.change(worker=worker("3"))

    second = pool.wait(
        lambda: pool.update,
        lambda seen: seen.get("toRevision") not in {None, first} and seen["step"] == "Soak",
        what="the second canary",
        seconds=60,
    )["toRevision"]
    during = {pod["metadata"]["uid"] for pod in pool.pods(revision=blue)}
    entry = pool.wait_over(2)

    assert during == uids
    assert [item["end"] for item in pool.history] == ["Promoted", "Replaced"]
    assert (entry["fromRevision"], entry["toRevision"]) == (blue, second)
    pool.wait(lambda: set(pool.deployments()), lambda seen: seen == {second}, what="it alone", seconds=30)
    figures(ends=[item["end"] for item in pool.history])


def test_spec_set_back_cancels(pool: UpdatedPool, figures) -> None:
    """The spec set back amid the soak: the canary goes, blue serves on."""
    blue, _ = soaking(pool, worker=worker("2"))
    pool.change(worker=worker("1"))

    entry = pool.wait_over()

    figures(end=entry["end"], seconds=entry["durationSeconds"])
    assert (entry["end"], entry["reason"]) == ("Cancelled", "SpecSetBack")
    pool.wait(lambda: set(pool.deployments()), lambda seen: seen == {blue}, what="blue alone", seconds=30)
    assert pool.status["phase"] == "Ready"
    assert "failed" not in pool.status


def test_source_of_the_bundle_is_edited_and_deleted(
    make: Make, api: LocalCluster, namespace: str, figures
) -> None:
    """The ConfigMaps edited and deleted amid the soak, then a pod of blue killed: it comes back."""

    def bundle(name: str, content: bytes) -> dict[str, Any]:

        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace},
            "binaryData": {"bundle.safetensors": base64.b64encode(content).decode()},
        }
        api.kubectl("apply", "--filename=-", stdin=json.dumps(body))
        return {
            "version": name,
            "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "source": {"configMap": {"name": name}},
        }

    first, second = bundle("v1", b"first"), bundle("v2", b"second")
    pool = make(replicas=9, worker=worker("1"), anchor=first, update=LONG)
    pool.wait_workers(9)
    blue, green = soaking(pool, anchor=second)
    bundle("v1", b"edited")
    api.kubectl("-n", namespace, "delete", "configmap", "v1", "v2")
    victim = pool.pods(revision=blue)[0]["metadata"]["name"]
    api.kubectl("-n", namespace, "delete", "pod", victim, "--grace-period=0", "--force")

    back = pool.wait(
        lambda: pool.pods(revision=blue),
        lambda pods: len(pods) == 9 and victim not in names(pods),
        what="another pod of blue",
        seconds=30,
    )
    volumes = {volume["name"]: volume for volume in back[0]["spec"]["volumes"]}
    copy = volumes["anchor"]["configMap"]["name"]
    held = json.loads(api.kubectl("-n", namespace, "get", "configmap", copy, "-o", "json"))
    entry = pool.wait_over()

    def left() -> list[str]:
        names = api.kubectl("-n", namespace, "get", "configmaps", "-o", "name").split()
        return [name for name in names if name.endswith("-anchor")]

    pool.wait(left, lambda seen: f"configmap/{copy}" not in seen, what="blue's copy to be gone", seconds=30)
    assert base64.b64decode(held["binaryData"]["bundle.safetensors"]) == b"first"
    assert held["immutable"] is True
    assert entry["end"] == "Promoted"
    assert (entry["fromAnchor"], entry["toAnchor"]) == ("v1", "v2")
    assert pool.status["anchor"]["active"]["revision"] == green
    figures(end=entry["end"], copies_left=len(left()))


def test_deployments_edited_by_hand(pool: UpdatedPool, figures) -> None:
    """Deployments of both revisions edited by hand amid the soak are put back, and the update goes on."""
    blue, green = soaking(pool, worker=worker("2"))
    for revision in (blue, green):
        name = f"{pool.name}-{revision}"
        patch = {
            "spec": {"template": {"spec": {"containers": [{"name": "zerolayer-worker", "image": "evil:1"}]}}}
        }
        pool.kubectl("-n", pool.namespace, "patch", "deployment", name, "--patch", json.dumps(patch))
    pool.kubectl("-n", pool.namespace, "scale", f"deployment/{pool.name}-{green}", "--replicas=0")

    def images() -> set[str]:
        found = pool.deployments().values()
        return {item["spec"]["template"]["spec"]["containers"][0]["image"] for item in found}

    pool.wait(images, lambda seen: seen == {"zerolayer.dev/worker:test"}, what="the images back", seconds=30)
    pool.wait(pool.sizes_of, lambda seen: seen.get(green, 0) >= 1, what="the canary's size back", seconds=30)
    entry = pool.wait_over()
    figures(end=entry["end"])
    assert (entry["end"], entry["reason"]) == ("Promoted", "NoWorse")


def test_worse_only_later_in_the_soak(pool: UpdatedPool, answers: Answers, figures) -> None:
    """A canary that begins to fail after good times is left all the same."""
    blue = pool.status["servingRevision"]
    answers.known = {blue}
    soaking(pool, worker=worker("2"))
    pool.wait(lambda: pool.update.get("samples", 0), lambda seen: seen > 0, what="samples", seconds=60)
    answers.others = Quality(errors=0.2)

    entry = pool.wait_over()

    figures(end=entry["end"], reason=entry["reason"])
    assert (entry["end"], entry["reason"]) == ("RolledBack", "ErrorRateHigher")
    assert pool.status["servingRevision"] == blue
