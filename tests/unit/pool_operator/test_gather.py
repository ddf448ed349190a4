"""What counts as a pool's own, seen against an API server that holds a few objects."""

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, spec, wire_spec
from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import (
    CHILD_KINDS,
    DEPLOYMENT,
    EXTERNAL_METRICS,
    NETWORK_POLICY,
    POD,
    POOL,
    Kind,
)
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.observe.gather import Gatherer
from zerolayer_operator.observe.kept import STEADY
from zerolayer_operator.observe.lookups import Lookups
from zerolayer_operator.observe.state import ChildKey, Wishes

OWNER = {
    "apiVersion": names.API_VERSION,
    "kind": "ZeroLayerPool",
    "name": "pool",
    "uid": "u",
    "controller": True,
}


class Objects:
    """Lists and gets objects as the API server would."""

    def __init__(self, *bodies: dict[str, Any]) -> None:
        self.bodies = bodies
        self.named: list[str] = []
        self.listed: list[Kind] = []
        self.apis: list[str] = []

    async def list(
        self, kind: Kind, _: str, selector: str = "", *, name: str | None = None
    ) -> list[dict[str, Any]]:
        if name is not None:
            self.named.append(name)
            return self._of(kind, lambda metadata: metadata["name"] == name)
        self.listed.append(kind)
        key, _, value = selector.partition("=")
        return self._of(kind, lambda metadata: metadata.get("labels", {}).get(key) == value)

    async def registered(self, api_version: str) -> bool:
        self.apis.append(api_version)
        return False

    async def get(self, kind: Kind, _: str, name: str) -> dict[str, Any] | None:
        return next(iter(self._of(kind, lambda metadata: metadata["name"] == name)), None)

    async def metadata(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        body = await self.get(kind, namespace, name)
        return None if body is None else {"metadata": body["metadata"]}

    def _of(self, kind: Kind, fits: Callable[[dict[str, Any]], bool]) -> Any:
        return [body for body in self.bodies if body["kind"] == kind.kind and fits(body["metadata"])]


async def never(*_: object) -> str:
    raise AssertionError


NOTHING_TO_ASK = Lookups(never, never, "w:1", "Never")


def the_pool(spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    metadata = {"name": "pool", "uid": "u", "generation": 1}
    return {"kind": POOL.kind, "metadata": metadata, "spec": wire_spec(**(spec or {})), "status": status}


def made(revision: str, **metadata: Any) -> dict[str, Any]:
    template = {"metadata": {}, "spec": {"containers": [{"name": "w", "image": "w:1"}]}}
    annotations = {names.ANNOTATION_TEMPLATE: json.dumps(template)}
    own = {"name": f"pool-{revision}", "uid": "d", "annotations": annotations, "ownerReferences": [OWNER]}
    return {
        "kind": DEPLOYMENT.kind,
        "metadata": {**own, **metadata},
        "spec": {"replicas": 2, "template": template},
    }


async def test_serving_deployment_without_its_labels_is_still_known() -> None:
    """Otherwise it would be made anew with today's template, and its pods would restart."""
    api = Objects(the_pool(servingRevision="abc"), made("abc"))
    found = await Gatherer(api, NOTHING_TO_ASK).observe("default", "pool")  # type: ignore[arg-type]

    assert found is not None
    assert [(item.revision, item.size) for item in found.deployments] == [("abc", 2)]


@pytest.mark.parametrize("policies", [True, False])
async def test_steady_children_are_listed_anew_only_after_a_change(policies: bool) -> None:
    """Of policies no watch would tell where pools have none."""
    api = Objects(the_pool())
    gatherer = Gatherer(api, NOTHING_TO_ASK, network_policies=policies)  # type: ignore[arg-type]
    await gatherer.observe("default", "pool")
    first, api.listed = api.listed, []
    await gatherer.observe("default", "pool")
    second, api.listed = api.listed, []
    gatherer.kept.drop(("default", "pool"))
    await gatherer.observe("default", "pool")

    kept = STEADY - (set() if policies else {NETWORK_POLICY})
    assert set(first) == {*CHILD_KINDS, POD}
    assert set(second) == set(first) - kept
    assert sorted(api.listed, key=str) == sorted(first, key=str)


async def test_deployments_with_labels_are_not_asked_for_twice() -> None:
    labels = names.owned_by_pool("pool")
    api = Objects(
        the_pool(servingRevision="abc", revisions=[{"name": "abc", "image": "w:1", "warm": True}]),
        made("abc", labels=labels),
    )
    found = await Gatherer(api, NOTHING_TO_ASK).observe("default", "pool")  # type: ignore[arg-type]

    assert found is not None
    assert len(found.deployments) == 1
    assert api.named == []


async def test_deployment_of_somebody_else_is_foreign_whatever_it_is_called() -> None:
    api = Objects(the_pool(servingRevision="abc"), made("abc", ownerReferences=[]))
    found = await Gatherer(api, NOTHING_TO_ASK).observe("default", "pool")  # type: ignore[arg-type]

    assert found is not None
    assert found.deployments == ()
    assert [key.name for key in found.foreign] == ["pool-abc"]


@pytest.mark.parametrize(
    ("owner", "kind"),
    [
        ({**OWNER, "uid": "earlier"}, "leftover"),
        ({**OWNER, "uid": "earlier", "name": "other"}, "foreign"),
        ({**OWNER, "uid": "earlier", "kind": "Deployment"}, "foreign"),
        ({**OWNER, "uid": "earlier", "apiVersion": "else.dev/v1"}, "foreign"),
        ({**OWNER, "uid": "earlier", "controller": False}, "foreign"),
        (OWNER, "children"),
    ],
    ids=["earlier pool", "another pool", "another kind", "another group", "no controller", "this pool"],
)
async def test_children_of_an_earlier_pool_of_this_name_are_told_from_those_of_others(owner, kind) -> None:
    service = {"kind": "Service", "metadata": {"name": "pool", "ownerReferences": [owner]}}
    found = await Gatherer(Objects(the_pool(), service), NOTHING_TO_ASK).observe("default", "pool")  # type: ignore[arg-type]

    assert found is not None
    key = ChildKey("Service", "pool")
    assert [where for where in ("children", "foreign", "leftover") if key in getattr(found, where)] == [kind]


@pytest.mark.parametrize(("makes", "labels", "seen"), [
    (True, {}, True), (False, names.owned_by_pool("pool"), True), (False, {}, False),
])  # fmt: skip
async def test_network_policies_are_only_listed_where_none_are_made(makes, labels, seen) -> None:
    metadata = {"name": "pool", "labels": labels, "ownerReferences": [OWNER]}
    api = Objects(the_pool(), {"kind": "NetworkPolicy", "metadata": metadata})
    gatherer = Gatherer(api, NOTHING_TO_ASK, network_policies=makes)  # type: ignore[arg-type]
    found = await gatherer.observe("default", "pool")

    assert found is not None
    assert (ChildKey("NetworkPolicy", "pool") in found.children) is seen


@pytest.mark.parametrize(
    ("autoscaling", "asked"),
    [
        (None, False),
        ({"metric": {"type": "CPU"}}, False),
        ({"metric": {"type": "Utilization"}}, True),
        ({"metric": {"type": "Utilization"}, "provider": "KEDA"}, False),
    ],
    ids=["fixed size", "cpu", "external", "keda serves them"],
)
async def test_external_metrics_are_looked_for_only_where_they_are_needed(autoscaling, asked) -> None:
    scaled = {"autoscaling": {"maxReplicas": 2, **autoscaling}} if autoscaling else {}
    api = Objects(the_pool(scaled))
    found = await Gatherer(api, NOTHING_TO_ASK).observe("default", "pool")  # type: ignore[arg-type]

    assert found is not None
    assert api.apis == ([EXTERNAL_METRICS] if asked else [])
    assert found.external_metrics is not asked


async def test_wishes_of_people_are_read_off_the_pool() -> None:
    pool = the_pool()
    pool["metadata"]["annotations"] = {names.ANNOTATION_ROLL_BACK: "abc"}
    found = await Gatherer(Objects(pool), NOTHING_TO_ASK).observe("default", "pool")  # type: ignore[arg-type]

    assert found is not None
    assert found.wishes == Wishes(roll_back="abc")


@pytest.mark.parametrize(("uid", "in_the_way"), [("earlier", True), ("u", False)])
async def test_copy_of_a_bundle_of_an_earlier_pool_is_waited_for(uid: str, in_the_way: bool) -> None:
    content = b"weights"
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    anchor = {"version": "v1", "digest": digest, "source": {"configMap": {"name": "facts"}}}
    pool = the_pool({"anchor": anchor})
    copy = names.anchor_copy_name("pool", revision_hash(spec(anchor=anchor)))
    annotations = {names.ANNOTATION_ANCHOR_DIGEST: digest}
    metadata = {"name": copy, "ownerReferences": [{**OWNER, "uid": uid}], "annotations": annotations}
    source = {"bundle.safetensors": base64.b64encode(content).decode()}
    api = Objects(
        pool,
        {"kind": "ConfigMap", "metadata": {"name": "facts"}, "binaryData": source},
        {"kind": "ConfigMap", "metadata": metadata},
    )
    found = await Gatherer(api, NOTHING_TO_ASK).observe("default", "pool")  # type: ignore[arg-type]

    assert found is not None
    assert (ChildKey("ConfigMap", copy) in found.leftover) is in_the_way
    assert (found.bundles[copy].data is not None) is in_the_way
    assert [item.name for item in plan(found, DEFAULTS, NOW).copies] == ([copy] if in_the_way else [])


class Defined:
    """Says that a kind is there, or that it isn't."""

    def __init__(self, *, there: bool) -> None:
        self.there = there

    async def present(self) -> bool:
        return self.there


def scaled_by_keda() -> list[dict[str, Any]]:
    """A ScaledObject of the pool's, and the autoscaler that KEDA made of it, which bears the same labels."""
    target = {"scaleTargetRef": {"name": "pool-abc"}}
    scaled = {"name": "pool", "uid": "s", "ownerReferences": [OWNER]}
    owner = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "pool", "uid": "s"}
    made = {
        "name": "keda-hpa-pool",
        "labels": names.owned_by_pool("pool"),
        "ownerReferences": [{**owner, "controller": True}],
    }
    return [
        {"kind": "ScaledObject", "metadata": scaled, "spec": target},
        {"kind": "HorizontalPodAutoscaler", "metadata": made, "spec": target},
    ]


@pytest.mark.parametrize(
    ("defined", "seen"), [(None, False), (Defined(there=False), False), (Defined(there=True), True)]
)
async def test_scaled_objects_are_looked_at_only_where_there_can_be_some(defined, seen: bool) -> None:
    api = Objects(the_pool(), *scaled_by_keda())
    gatherer = Gatherer(api, NOTHING_TO_ASK, scaled_objects=defined)  # type: ignore[arg-type]
    found = await gatherer.observe("default", "pool")

    assert found is not None
    assert found.scalable_by_keda is seen
    assert (ChildKey("ScaledObject", "pool") in found.children) is seen
    assert found.autoscaler_revision == ("abc" if seen else None)


@pytest.mark.parametrize(
    ("defined", "routable"), [(None, None), (Defined(there=False), False), (Defined(there=True), True)]
)
async def test_routes_are_looked_at_only_where_there_can_be_some(defined, routable) -> None:
    route = {"kind": "HTTPRoute", "metadata": {"name": "pool", "ownerReferences": [OWNER]}}
    gatherer = Gatherer(Objects(the_pool(), route), NOTHING_TO_ASK, http_routes=defined)  # type: ignore[arg-type]
    found = await gatherer.observe("default", "pool")

    assert found is not None
    assert found.routable is routable
    assert (ChildKey("HTTPRoute", "pool") in found.children) is (routable is True)


ROUTED = {"routing": {"gateway": {"parentRefs": [{"name": "gate"}]}}}
NEXT = revision_hash(PoolSpec.model_validate_json(json.dumps(wire_spec())))


@pytest.mark.parametrize(
    ("spec", "deployments", "seen"),
    [
        ({}, [NEXT], set()),
        ({}, ["abc"], {"pool-abc", f"pool-{NEXT}", "pool-canary"}),
        (ROUTED, [NEXT], {f"pool-{NEXT}"}),
        (ROUTED, [], {f"pool-{NEXT}"}),
    ],
    ids=["steady", "another revision is wanted", "routed", "routed and new"],
)
async def test_service_of_somebody_else_is_seen_before_one_is_made_in_its_place(
    spec, deployments, seen: set[str]
) -> None:
    labels = names.owned_by_pool("pool")
    services = [
        {"kind": "Service", "metadata": {"name": name}}
        for name in ("pool-abc", f"pool-{NEXT}", "pool-canary")
    ]
    api = Objects(the_pool(spec), *(made(name, labels=labels) for name in deployments), *services)
    found = await Gatherer(api, NOTHING_TO_ASK).observe("default", "pool")  # type: ignore[arg-type]

    assert found is not None
    assert {key.name for key in found.foreign} == seen


async def test_autoscaler_that_keda_owns_is_never_the_pools() -> None:
    api = Objects(the_pool(), *scaled_by_keda())
    gatherer = Gatherer(api, NOTHING_TO_ASK, scaled_objects=Defined(there=True))  # type: ignore[arg-type]
    found = await gatherer.observe("default", "pool")

    assert found is not None
    kept = ChildKey("HorizontalPodAutoscaler", "keda-hpa-pool")
    assert kept not in found.children
    assert kept in found.foreign
    assert found.autoscaler["metadata"]["name"] == kept.name
    assert kept not in plan(found, DEFAULTS, NOW).unwanted
