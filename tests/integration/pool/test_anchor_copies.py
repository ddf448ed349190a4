"""Bundles in ConfigMaps, and the copies that revisions start from, on a real API server."""

import base64
import hashlib
import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from zerolayer_dev.testing.fake_kubelet import make_ready
from zerolayer_dev.testing.pools import Pool, cpu_pool
from zerolayer_operator.api.names import anchor_copy_name
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.spec import PoolSpec

BUNDLE, OTHER = b"weights of norms \x00\xff", b"other weights \x00\xff"
KEY = "bundle.safetensors"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def in_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


@dataclass(frozen=True)
class ConfigMaps:
    """ConfigMaps of a namespace, as people make them."""

    kubectl: Callable[..., str]
    namespace: str

    def put(self, name: str, content: bytes | None = BUNDLE, **fields: Any) -> None:
        """Writes one that holds a bundle, or only what is named."""
        binary = {} if content is None else {"binaryData": {KEY: in_base64(content)}}
        self.kubectl("apply", "--filename=-", stdin=json.dumps(self._body(name, **binary, **fields)))

    def create(self, name: str, content: bytes) -> None:
        """Makes one of any size; client-side apply would keep a copy in an annotation, which has no room."""
        body = self._body(name, binaryData={KEY: in_base64(content)})
        self.kubectl("create", "--filename=-", stdin=json.dumps(body))

    def _body(self, name: str, **fields: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}

    def remove(self, name: str) -> None:
        """Deletes one, if it is there."""
        self.kubectl("-n", self.namespace, "delete", "configmap", name, "--ignore-not-found")


@pytest.fixture
def config_maps(api, pools_namespace: str) -> ConfigMaps:
    return ConfigMaps(api.kubectl, pools_namespace)


@pytest.fixture
def source(config_maps: ConfigMaps) -> Iterator[str]:
    """Name of a ConfigMap that was not made yet."""
    name = f"facts-{secrets.token_hex(3)}"
    yield name
    config_maps.remove(name)


def anchor(source: str, content: bytes = BUNDLE, version: str = "v1") -> dict[str, Any]:
    return {"version": version, "digest": digest_of(content), "source": {"configMap": {"name": source}}}


def copy_of(pool: Pool, revision: str | None = None) -> dict[str, Any]:
    """The copy of a revision's bundle; of the one that serves unless another is named."""
    revision = revision or pool.status.get("servingRevision", "none")
    return pool.read("configmap", anchor_copy_name(pool.name, revision))


def wait_copy(pool: Pool, until: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
    return pool.wait(lambda: copy_of(pool), until, what=what, seconds=60)


@pytest.mark.parametrize("content", [BUNDLE, bytes(range(256)) * 2800], ids=["small", "700 kB"])
def test_bundle_is_copied_for_its_revision(make_pool, warm, config_maps, source, content: bytes) -> None:
    config_maps.create(source, content)
    pool = make_pool(replicas=1, anchor=anchor(source, content))
    warm(pool, 1)
    copy, (revision, made) = copy_of(pool), next(iter(pool.deployments().items()))

    assert copy["immutable"] is True
    assert copy["binaryData"] == {KEY: in_base64(content)}
    assert copy["metadata"]["annotations"]["zerolayer.dev/anchor-digest"] == digest_of(content)
    (owner,) = copy["metadata"]["ownerReferences"]
    assert owner["uid"] == pool.manifest["metadata"]["uid"]
    template = made["spec"]["template"]["spec"]
    assert {
        "configMap": {"defaultMode": 0o644, "name": f"{pool.name}-{revision}-anchor"},
        "name": "anchor",
    } in (template["volumes"])
    assert pool.status["anchor"]["active"] == {
        "version": "v1", "digest": digest_of(content), "revision": revision
    }  # fmt: skip
    assert pool.condition("AnchorCurrent")["status"] == "True"


def test_copy_outlives_its_source_and_is_made_again_while_there_is_one(
    make_pool, warm, config_maps: ConfigMaps, source: str
) -> None:
    config_maps.put(source)
    pool = make_pool(replicas=1, anchor=anchor(source))
    warm(pool, 1)
    first, revision = copy_of(pool), pool.status["servingRevision"]
    name = first["metadata"]["name"]

    config_maps.remove(name)
    second = wait_copy(pool, bool, "the copy to be made again")
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert second["binaryData"] == first["binaryData"]

    config_maps.put(source, OTHER)
    config_maps.remove(name)
    edited = pool.wait_condition("Degraded", "True", reason="AnchorCopyMissing")
    assert digest_of(OTHER) in edited["message"]
    config_maps.put(source)
    third = wait_copy(pool, bool, "the copy to be made of the right source")
    pool.wait_condition("Degraded", "False")

    config_maps.put(source, OTHER)
    config_maps.remove(source)
    # Nothing is told of either; a look at the pool is certain to have come once the next problem is told.
    assert copy_of(pool) == third
    config_maps.remove(name)
    lost = pool.wait_condition("Degraded", "True", reason="AnchorCopyMissing")
    assert f"make a ConfigMap {name} with bundle {digest_of(BUNDLE)}" in lost["message"]

    config_maps.put(name)
    pool.wait_condition("Degraded", "False")
    assert pool.status["servingRevision"] == revision
    assert set(pool.deployments()) == {revision}
    reasons = [event["reason"] for event in pool.events()]
    assert "ConfigMapNotFound" not in reasons
    assert "AnchorDigestMismatch" not in reasons
    config_maps.remove(name)


def test_copy_goes_with_its_revision(api, make_pool, warm, config_maps: ConfigMaps, source: str) -> None:
    config_maps.put(source)
    pool = make_pool(replicas=1, anchor=anchor(source))
    warm(pool, 1)
    old = pool.status["servingRevision"]
    config_maps.put(source, OTHER)
    pool.change(anchor=anchor(source, OTHER, "v2"))

    def look() -> set[str]:
        make_ready(api, pool.api, pool.namespace, pool.name)
        return set(pool.deployments())

    pool.wait(look, lambda found: len(found) == 1 and old not in found, what="the new revision", seconds=60)
    assert copy_of(pool)["binaryData"] == {KEY: in_base64(OTHER)}
    pool.wait(lambda: copy_of(pool, old), lambda found: found == {}, what="the old copy to go", seconds=30)


@pytest.mark.parametrize(
    ("content", "fields", "reason", "said"),
    [
        (None, None, "ConfigMapNotFound", "create it or correct the name"),
        (None, {"data": {KEY: "text"}}, "AnchorKeyMissing", "as text, not as binaryData"),
        (None, {"data": {"another": "text"}}, "AnchorKeyMissing", "not at all"),
        (OTHER, {}, "AnchorDigestMismatch", digest_of(OTHER)),
    ],
    ids=["missing", "text", "another key", "another bundle"],
)
def test_pool_waits_for_the_bundle_that_its_spec_names(
    make_pool, config_maps: ConfigMaps, source: str, content, fields, reason: str, said: str
) -> None:
    if fields is not None:
        config_maps.put(source, content, **fields)
    pool = make_pool(replicas=1, anchor=anchor(source))
    problem = pool.wait_condition("Degraded", "True", reason=reason)
    assert said in problem["message"]
    assert pool.condition("AnchorCurrent")["reason"] == reason
    assert pool.deployments() == {}

    config_maps.remove(source)
    config_maps.put(source)
    pool.wait(pool.deployments, bool, what="workers once the bundle is there", seconds=60)
    wait_copy(pool, bool, "the copy")


def test_name_of_a_copy_that_somebody_else_has_is_told(
    make_pool, config_maps: ConfigMaps, source: str
) -> None:
    config_maps.put(source)
    name, fields = f"p-{secrets.token_hex(3)}", {"replicas": 1, "anchor": anchor(source)}
    of = PoolSpec.model_validate_json(json.dumps(cpu_pool(name, config_maps.namespace, **fields)["spec"]))
    taken = anchor_copy_name(name, revision_hash(of))
    config_maps.put(taken, OTHER)
    pool = make_pool(name, **fields)

    problem = pool.wait_condition("Degraded", "True", reason="NameTaken")
    assert f"ConfigMap {taken} exists and is not the copy" in problem["message"]
    assert pool.deployments() == {}
    config_maps.remove(taken)
    wait_copy(pool, bool, "the copy in its place")


def test_pool_that_is_made_anew_waits_for_the_earlier_ones_copy_to_go(
    make_pool, warm, config_maps: ConfigMaps, source: str
) -> None:
    config_maps.put(source)
    pool = make_pool(replicas=1, anchor=anchor(source))
    warm(pool, 1)
    pool.delete()
    again = make_pool(pool.name, replicas=1, anchor=anchor(source))
    uid = again.manifest["metadata"]["uid"]

    def is_own(copy: dict[str, Any]) -> bool:
        return bool(copy) and copy["metadata"]["ownerReferences"][0]["uid"] == uid

    wait_copy(again, is_own, "a copy of its own")
    assert not [event for event in again.events() if event["reason"] == "NameTaken"]
