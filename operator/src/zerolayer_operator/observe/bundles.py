"""The bundles of revisions whose anchors come from ConfigMaps, and the copies that are kept of them."""

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from zerolayer_operator.api import names
from zerolayer_operator.api.anchor import AnchorSpec
from zerolayer_operator.api.kinds import CONFIG_MAP
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.access import section
from zerolayer_operator.observe.parse import annotation, controlled_by
from zerolayer_operator.observe.state import Object, ObservedBundle, ObservedDeployment, Problem


@dataclass(frozen=True, slots=True)
class _Wish:
    """A copy that is to be there.

    Attributes:
        digest: Of what it holds.
        source: The anchor as the spec has it, where that is the same one.
    """

    digest: str
    source: AnchorSpec | None


async def bundles(
    kube: Kube,
    namespace: str,
    *,
    pool: str,
    uid: str,
    spec: PoolSpec | None,
    deployments: Collection[ObservedDeployment],
) -> Mapping[str, ObservedBundle]:
    """What is known of each bundle that a revision needs a copy of, by the copy's name.

    A copy that exists is looked at by its metadata alone. The source is read only where there is none.

    Raises:
        ApiServerError: The API server refuses or can't be reached.
    """
    wishes = _wishes(pool, spec, deployments)
    found = await asyncio.gather(
        *(_bundle(kube, namespace, uid, name, wish) for name, wish in wishes.items())
    )
    return dict(zip(wishes, found, strict=True))


def _wishes(
    pool: str, spec: PoolSpec | None, deployments: Collection[ObservedDeployment]
) -> dict[str, _Wish]:
    anchor = spec.anchor if spec is not None and spec.anchor and spec.anchor.source.config_map else None
    wishes: dict[str, _Wish] = {}
    for item in deployments:
        frozen = item.frozen
        if frozen.anchor_copy is not None and frozen.anchor is not None:
            same = anchor is not None and anchor.digest == frozen.anchor.digest
            wishes[frozen.anchor_copy] = _Wish(frozen.anchor.digest, anchor if same else None)
    if spec is not None and anchor is not None:
        name = names.anchor_copy_name(pool, revision_hash(spec))
        wishes.setdefault(name, _Wish(anchor.digest, anchor))
    return wishes


async def _bundle(kube: Kube, namespace: str, uid: str, name: str, wish: _Wish) -> ObservedBundle:
    copy = await kube.metadata(CONFIG_MAP, namespace, name)
    if copy is not None:
        return _seen(copy, uid, name, wish)
    if wish.source is None:
        return ObservedBundle(
            problem=Problem(
                "AnchorCopyMissing",
                f"ConfigMap {name}, the copy of a revision's bundle, was deleted, and the spec no longer "
                f"names where bundle {wish.digest} came from: workers of that revision can't start again; "
                f"make a ConfigMap {name} with the bundle as binaryData bundle.safetensors",
            )
        )
    return await _from_source(kube, namespace, wish.source)


def _seen(copy: Object, uid: str, name: str, wish: _Wish) -> ObservedBundle:
    if not controlled_by(copy, uid) or annotation(copy, names.ANNOTATION_ANCHOR_DIGEST) != wish.digest:
        problem = Problem(
            "NameTaken",
            f"ConfigMap {name} exists and is not the copy of bundle {wish.digest} that the pool needs there; "
            "delete or rename it",
        )
        return ObservedBundle(problem=problem)
    return ObservedBundle(uid=str(section(copy, "metadata").get("uid")))


async def _from_source(kube: Kube, namespace: str, anchor: AnchorSpec) -> ObservedBundle:
    source = anchor.source.config_map
    if source is None:
        raise ValueError("the anchor comes from no ConfigMap")
    body = await kube.get(CONFIG_MAP, namespace, source.name)
    field = "spec.anchor.source.configMap"
    if body is None:
        return _problem(
            "ConfigMapNotFound",
            f"{field}.name names ConfigMap {source.name}, which namespace {namespace} doesn't have; create "
            "it or correct the name",
        )
    data = section(body, "binaryData").get(source.key)
    if data is None:
        textual = source.key in section(body, "data")
        why = "as text, not as binaryData" if textual else "not at all"
        return _problem(
            "AnchorKeyMissing",
            f"{field} names key {source.key} of ConfigMap {source.name}, which has it {why}; make the "
            "ConfigMap with `zerolayer-worker anchor pack`",
        )
    digest = _digest(str(data))
    if digest != anchor.digest:
        return _problem(
            "AnchorDigestMismatch",
            f"the bundle in ConfigMap {source.name} has digest {digest}, not {anchor.digest} as spec.anchor "
            "has it; correct spec.anchor.digest (and spec.anchor.version), or the ConfigMap",
        )
    return ObservedBundle(data=str(data))


def _digest(data: str) -> str:
    try:
        content = base64.b64decode(data, validate=True)
    except binascii.Error:
        return "none, for it is no base64"
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _problem(reason: str, message: str) -> ObservedBundle:
    return ObservedBundle(problem=Problem(reason, message))
