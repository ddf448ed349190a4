"""The bundles of revisions whose anchors come from ConfigMaps, and the copies that are kept of them."""

import asyncio
import base64
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.anchor import DEFAULT_KEY, AnchorSpec
from zerolayer_operator.api.kinds import CONFIG_MAP
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.access import section
from zerolayer_operator.observe.parse import annotation, controlled_by, controlled_by_earlier
from zerolayer_operator.observe.state import Object, ObservedBundle, ObservedDeployment, Problem


@dataclass(frozen=True, slots=True)
class _Wish:
    """A copy that is to be there.

    Attributes:
        digest: Of what it holds.
        source: The anchor as the spec has it, where that is the same one.
        needed: Whether the revision exists, so that the copy has been there before.
    """

    digest: str
    source: AnchorSpec | None
    needed: bool = False


_FORGOTTEN: Final = Problem(
    "AnchorCopyMissing", "the spec no longer names where its bundle came from; name that again"
)


@dataclass(frozen=True, slots=True)
class _Owner:
    """The pool that copies belong to."""

    name: str
    uid: str


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
    owner = _Owner(pool, uid)
    found = await asyncio.gather(
        *(_bundle(kube, namespace, owner, name, wish) for name, wish in wishes.items())
    )
    return dict(zip(wishes, found, strict=True))


def _wishes(
    pool: str, spec: PoolSpec | None, deployments: Collection[ObservedDeployment]
) -> dict[str, _Wish]:
    anchor = spec.anchor if spec is not None and spec.anchor and spec.anchor.source.config_map else None
    wishes: dict[str, _Wish] = {}
    for item in deployments:
        frozen, name = item.frozen, names.anchor_copy_name(pool, item.revision)
        # A hand may have written any other name on the Deployment, such as one that leads elsewhere.
        if frozen.anchor_copy == name and frozen.anchor is not None:
            same = anchor is not None and anchor.digest == frozen.anchor.digest
            wishes[name] = _Wish(frozen.anchor.digest, anchor if same else None, needed=True)
    if spec is not None and anchor is not None:
        name = names.anchor_copy_name(pool, revision_hash(spec))
        wishes.setdefault(name, _Wish(anchor.digest, anchor))
    return wishes


async def _bundle(kube: Kube, namespace: str, owner: _Owner, name: str, wish: _Wish) -> ObservedBundle:
    copy = await kube.metadata(CONFIG_MAP, namespace, name)
    leftover = copy is not None and controlled_by_earlier(copy, owner.name, owner.uid)
    if copy is not None and not leftover:
        return await _seen(kube, namespace, copy, owner.uid, wish)
    found = await _from_source(kube, namespace, wish.source) if wish.source is not None else _FORGOTTEN
    if not isinstance(found, Problem):
        return ObservedBundle(data=found, leftover=leftover)
    if not wish.needed:
        return ObservedBundle(problem=found)
    # Its source may be deleted once the copy is there: what is wrong is that the copy was deleted too.
    message = (
        f"ConfigMap {name}, the copy of a revision's bundle, was deleted, and workers of that revision can't "
        f"start again: {found.message}; or make a ConfigMap {name} with bundle {wish.digest} as key "
        f"{DEFAULT_KEY} of its binaryData"
    )
    return ObservedBundle(problem=Problem("AnchorCopyMissing", message))


async def _seen(kube: Kube, namespace: str, copy: Object, uid: str, wish: _Wish) -> ObservedBundle:
    own = controlled_by(copy, uid)
    told = section(copy, "metadata")
    if own and annotation(copy, names.ANNOTATION_ANCHOR_DIGEST) == wish.digest:
        return ObservedBundle(uid=str(told.get("uid")))
    name = str(told.get("name"))
    # One that a person made in place of a copy that was lost counts by what it holds.
    body = await kube.get(CONFIG_MAP, namespace, name)
    if _digest(section(body, "binaryData").get(DEFAULT_KEY)) == wish.digest:
        return ObservedBundle(uid=str(told.get("uid")) if own else None)
    problem = Problem(
        "NameTaken",
        f"ConfigMap {name} exists and is not the copy of bundle {wish.digest} that the pool needs there; "
        "delete or rename it",
    )
    return ObservedBundle(problem=problem)


async def _from_source(kube: Kube, namespace: str, anchor: AnchorSpec) -> str | Problem:
    """The bundle, in base64, or why there is none."""
    source = anchor.source.config_map
    if source is None:
        raise ValueError("the anchor comes from no ConfigMap")
    body = await kube.get(CONFIG_MAP, namespace, source.name)
    field = "spec.anchor.source.configMap"
    if body is None:
        return Problem(
            "ConfigMapNotFound",
            f"{field}.name names ConfigMap {source.name}, which namespace {namespace} doesn't have; create "
            "it or correct the name",
        )
    data = section(body, "binaryData").get(source.key)
    if data is None:
        textual = source.key in section(body, "data")
        why = "as text, not as binaryData" if textual else "not at all"
        return Problem(
            "AnchorKeyMissing",
            f"{field} names key {source.key} of ConfigMap {source.name}, which has it {why}; make the "
            "ConfigMap with `zerolayer-worker anchor pack`",
        )
    digest = _digest(data)
    if digest != anchor.digest:
        return Problem(
            "AnchorDigestMismatch",
            f"the bundle in ConfigMap {source.name} has digest {digest}, not {anchor.digest} as spec.anchor "
            "has it; correct spec.anchor.digest (and spec.anchor.version), or the ConfigMap",
        )
    return str(data)


def _digest(data: object) -> str | None:
    """Digest of what is given in base64, as the API server has it; ``None`` where there is nothing."""
    if not isinstance(data, str):
        return None
    return f"sha256:{hashlib.sha256(base64.b64decode(data)).hexdigest()}"
