"""The bundles of revisions, as the API server's ConfigMaps have them."""

import base64
import hashlib
from typing import Any

import pytest

from zerolayer_dev.testing.observed import deployment, spec
from zerolayer_operator.api import names
from zerolayer_operator.api.revision import FrozenAnchor, FrozenInputs, revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.kube import ApiServerError
from zerolayer_operator.observe.bundles import bundles
from zerolayer_operator.observe.state import ObservedBundle, ObservedDeployment

BUNDLE, EDITED = b"weights of norms", b"other weights"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def in_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


DATA = in_base64(BUNDLE)
DIGEST = digest_of(BUNDLE)


def anchored(content: bytes = BUNDLE, key: str | None = None, version: str = "v1") -> PoolSpec:
    source = {"name": "facts", **({"key": key} if key is not None else {})}
    return spec(
        anchor={"version": version, "digest": digest_of(content), "source": {"configMap": source}},
    )


def config_map(name: str, content: bytes | None = BUNDLE, **more: Any) -> dict[str, Any]:
    binary = {} if content is None else {"binaryData": {"bundle.safetensors": in_base64(content)}}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, **binary, **more}


def owned(name: str, content: bytes = BUNDLE, uid: str = "u", pool: str = "pool") -> dict[str, Any]:
    """A copy as the operator makes it."""
    copy = config_map(name, content)
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": pool,
        "uid": uid,
        "controller": True,
    }
    copy["metadata"]["ownerReferences"] = [owner]
    copy["metadata"]["annotations"] = {names.ANNOTATION_ANCHOR_DIGEST: digest_of(content)}
    return copy


class ConfigMaps:
    """Gets ConfigMaps as the API server would, and remembers of which more than the metadata was read."""

    def __init__(self, *bodies: dict[str, Any]) -> None:
        self.bodies = {body["metadata"]["name"]: body for body in bodies}
        self.read: list[str] = []
        self.looked_at: list[str] = []

    async def get(self, _: object, namespace: str, name: str) -> dict[str, Any] | None:
        assert namespace == "default"
        self.read.append(name)
        return self.bodies.get(name)

    async def metadata(self, _: object, namespace: str, name: str) -> dict[str, Any] | None:
        assert namespace == "default"
        self.looked_at.append(name)
        body = self.bodies.get(name)
        return None if body is None else {"metadata": body["metadata"]}


class Refusing:
    """An API server that does not let ConfigMaps be read."""

    async def metadata(self, *_: object) -> dict[str, Any] | None:
        raise ApiServerError(403, "configmaps is forbidden")


def copy_name(of: PoolSpec) -> str:
    return names.anchor_copy_name("pool", revision_hash(of))


def made(of: PoolSpec, content: bytes = BUNDLE) -> ObservedDeployment:
    """The Deployment of a revision with a copy."""
    anchor = FrozenAnchor(version="v1", digest=digest_of(content))
    return deployment(of, frozen=FrozenInputs(image="w:1", anchor=anchor, anchor_copy=copy_name(of)))


async def seen(api: ConfigMaps, of: PoolSpec | None, *deployments: ObservedDeployment) -> Any:
    found = await bundles(api, "default", pool="pool", uid="u", spec=of, deployments=deployments)  # type: ignore[arg-type]
    assert sorted(api.looked_at) == sorted(found)
    return found


NEW = anchored()
COPY = copy_name(NEW)


async def test_bundle_of_a_new_revision_is_read_from_its_source() -> None:
    assert await seen(ConfigMaps(config_map("facts")), NEW) == {COPY: ObservedBundle(data=DATA)}


async def test_key_is_the_one_that_the_spec_names() -> None:
    of = anchored(key="mine")
    source = config_map("facts", EDITED)
    source["binaryData"]["mine"] = DATA
    assert await seen(ConfigMaps(source), of) == {copy_name(of): ObservedBundle(data=DATA)}


async def test_copy_that_is_there_is_looked_at_by_its_metadata_alone() -> None:
    """Whatever became of the source; a look at a pool costs no megabyte."""
    api = ConfigMaps(owned(COPY), config_map("facts", EDITED))
    assert await seen(api, NEW, made(NEW)) == {COPY: ObservedBundle(uid=f"uid-{COPY}")}
    assert api.read == []


@pytest.mark.parametrize(
    "of",
    [
        None,
        spec(),
        spec(anchor={
            "version": "v1",
            "digest": DIGEST,
            "source": {"persistentVolumeClaim": {"claimName": "c", "path": "b"}},
        }),
    ],
    ids=["spec that can't be read", "no anchor", "anchor on a volume"],
)  # fmt: skip
async def test_nothing_is_looked_at_without_a_config_map(of: PoolSpec | None) -> None:
    assert await seen(ConfigMaps(), of, deployment("abc")) == {}


@pytest.mark.parametrize(
    ("source", "reason", "said"),
    [
        (None, "ConfigMapNotFound", "names ConfigMap facts, which namespace default doesn't have"),
        (config_map("facts", None), "AnchorKeyMissing", "has it not at all"),
        (
            config_map("facts", None, data={"bundle.safetensors": "text"}),
            "AnchorKeyMissing",
            "has it as text, not as binaryData",
        ),
        (
            config_map("facts", EDITED),
            "AnchorDigestMismatch",
            f"has digest {digest_of(EDITED)}, not {DIGEST}",
        ),
    ],
    ids=["no such ConfigMap", "no such key", "text", "another bundle"],
)
async def test_source_that_does_not_have_the_bundle_is_a_problem(source, reason: str, said: str) -> None:
    sources = [] if source is None else [source]
    new = (await seen(ConfigMaps(*sources), NEW))[COPY]
    lost = (await seen(ConfigMaps(*sources), NEW, made(NEW)))[COPY]

    assert (new.data, new.problem.reason) == (None, reason)
    assert said in new.problem.message
    # Sources may go once there are copies: then it is the copy that is missed.
    assert (lost.data, lost.problem.reason) == (None, "AnchorCopyMissing")
    assert said in lost.problem.message


async def test_copy_that_was_deleted_is_made_again_while_the_source_has_it() -> None:
    """For every revision that has the bundle, be it another than the spec's."""
    other = anchored(version="v2")
    found = await seen(ConfigMaps(config_map("facts")), other, made(NEW), made(other))
    assert found == {COPY: ObservedBundle(data=DATA), copy_name(other): ObservedBundle(data=DATA)}


@pytest.mark.parametrize("of", [anchored(EDITED), spec(), None], ids=["another bundle", "none", "unreadable"])
async def test_copy_whose_source_nobody_names_any_more_is_missed(of: PoolSpec | None) -> None:
    found = await seen(ConfigMaps(config_map("facts", EDITED)), of, made(NEW))
    problem = found[COPY].problem

    assert problem.reason == "AnchorCopyMissing"
    assert COPY in problem.message
    assert DIGEST in problem.message


@pytest.mark.parametrize(
    ("there", "uid"),
    [
        (config_map(COPY), None),
        ({**owned(COPY), "metadata": {**owned(COPY)["metadata"], "annotations": {}}}, f"uid-{COPY}"),
    ],
    ids=["made by a person", "its annotation taken away"],
)
async def test_config_map_in_the_copys_place_counts_by_what_it_holds(there, uid: str | None) -> None:
    """What a person made is not the operator's to delete."""
    assert await seen(ConfigMaps(there), spec(), made(NEW)) == {COPY: ObservedBundle(uid=uid)}


@pytest.mark.parametrize(
    "there",
    [
        config_map(COPY, EDITED),
        config_map(COPY, None, data={"a": "b"}),
        owned(COPY, EDITED),
        owned(COPY, EDITED, uid="else", pool="another"),
    ],
    ids=["another bundle", "no bundle", "copy of another bundle", "another pool's"],
)
async def test_name_that_is_taken_is_a_problem(there: dict[str, Any]) -> None:
    found = await seen(ConfigMaps(there, config_map("facts")), NEW)
    problem = found[COPY].problem

    assert (found[COPY].uid, found[COPY].data) == (None, None)
    assert problem.reason == "NameTaken"
    assert COPY in problem.message


async def test_copy_of_an_earlier_pool_of_this_name_is_waited_for() -> None:
    api = ConfigMaps(owned(COPY, uid="earlier"), config_map("facts"))
    assert await seen(api, NEW) == {COPY: ObservedBundle(data=DATA, leftover=True)}


@pytest.mark.parametrize("written", ["../secrets/s", "facts", None])
async def test_name_of_a_copy_that_was_written_by_hand_is_not_followed(written: str | None) -> None:
    frozen = made(NEW).frozen.model_copy(update={"anchor_copy": written})
    assert await seen(ConfigMaps(config_map("facts")), spec(), deployment(NEW, frozen=frozen)) == {}


async def test_refusal_of_the_api_server_is_no_missing_copy() -> None:
    with pytest.raises(ApiServerError, match="forbidden"):
        await bundles(Refusing(), "default", pool="pool", uid="u", spec=NEW, deployments=())  # type: ignore[arg-type]
