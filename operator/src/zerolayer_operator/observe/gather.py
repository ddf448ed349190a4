"""Gathers everything about one pool: all reads of a reconcile happen here."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import (
    AUTOSCALER,
    CHILD_KINDS,
    CONFIG_MAP,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    EXTERNAL_METRICS,
    HTTP_ROUTE,
    NETWORK_POLICY,
    POD,
    POD_MONITOR,
    POOL,
    SCALED_OBJECT,
    SERVICE,
    SERVICE_ACCOUNT,
    TRIGGER_AUTHENTICATION,
    Kind,
)
from zerolayer_operator.api.metric import MetricType
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.scaling import Provider
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe import references
from zerolayer_operator.observe.access import section
from zerolayer_operator.observe.autoscaler import keda_autoscaler
from zerolayer_operator.observe.bundles import bundles
from zerolayer_operator.observe.golden import GoldenSets
from zerolayer_operator.observe.kept import STEADY, KeptLists
from zerolayer_operator.observe.lookups import Found, Lookups
from zerolayer_operator.observe.optional import OptionalKind
from zerolayer_operator.observe.parse import (
    controlled_by,
    controlled_by_earlier,
    parse_deployment,
    parse_pod,
    parse_spec,
    parse_status,
)
from zerolayer_operator.observe.state import ChildKey, Object, ObservedPool
from zerolayer_operator.observe.wishes import wishes


@dataclass(frozen=True)
class Gatherer:
    """Reads a pool and its surroundings.

    Attributes:
        kube: The API server.
        lookups: Asks the model hub and registries what a revision's inputs stand for.
        network_policies: Whether pools have a NetworkPolicy; if not, the operator may only list them.
        pod_monitors: Tells whether there can be PodMonitors; ``None`` where they are switched off, and the
            operator may not even look at them.
        scaled_objects: The same about KEDA's ScaledObjects.
        http_routes: The same about the Gateway API's HTTPRoutes.
        kept: Lists of steady children; to be dropped by whoever learns of a change.
    """

    kube: Kube
    lookups: Lookups
    network_policies: bool = True
    pod_monitors: OptionalKind | None = None
    scaled_objects: OptionalKind | None = None
    http_routes: OptionalKind | None = None
    kept: KeptLists = field(default_factory=KeptLists)

    async def observe(self, namespace: str, name: str) -> ObservedPool | None:
        """The pool as it is, or ``None`` where it is gone or on its way out.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        monitored = self.pod_monitors is not None and await self.pod_monitors.present()
        by_keda = self.scaled_objects is not None and await self.scaled_objects.present()
        routable = await self.http_routes.present() if self.http_routes is not None else None
        optional = (
            *_where(monitored, POD_MONITOR),
            *_where(by_keda, SCALED_OBJECT, TRIGGER_AUTHENTICATION),
            *_where(routable is True, HTTP_ROUTE),
        )
        found = await self._children(namespace, name, optional)
        pods = await self.kube.list(POD, namespace, f"{names.LABEL_POOL}={name}")
        # Last, so that children which are missing because the pool was just deleted aren't made again.
        body = await self.kube.get(POOL, namespace, name)
        if body is None or "deletionTimestamp" in body["metadata"]:
            return None
        metadata = body["metadata"]
        spec, invalid = parse_spec(body.get("spec"))
        status = parse_status(body.get("status"))
        found |= await self._unlabelled(namespace, name, found.keys(), status)
        found |= await self._services(namespace, name, found.keys(), spec)
        golden = GoldenSets(self.kube, self.kept, self.network_policies)
        found |= await golden.children(namespace, name, spec, status, found.keys())
        children = {key: child for key, child in found.items() if controlled_by(child, metadata["uid"])}
        leftover = frozenset(
            key for key, child in found.items() if controlled_by_earlier(child, name, metadata["uid"])
        )
        deployments = tuple(
            parse_deployment(child)
            for key, child in sorted(children.items(), key=lambda item: item[0].name)
            if key.kind == "Deployment" and "deletionTimestamp" not in child["metadata"]
        )
        copies = await bundles(
            self.kube, namespace, pool=name, uid=metadata["uid"], spec=spec, deployments=deployments
        )
        leftover |= {ChildKey(CONFIG_MAP.kind, copy) for copy, bundle in copies.items() if bundle.leftover}
        missing = await references.missing(self.kube, namespace, spec) if spec is not None else ()
        found_out = Found()
        if spec is not None and not spec.paused:
            found_out = await self.lookups.look_up(self.kube, namespace, spec, status, deployments)
        return ObservedPool(
            namespace=namespace,
            name=name,
            uid=metadata["uid"],
            generation=metadata["generation"],
            spec=spec,
            invalid=invalid,
            status=status,
            raw_status=body.get("status") or {},
            children=children,
            foreign=frozenset(found.keys() - children.keys() - leftover),
            leftover=leftover,
            deployments=deployments,
            pods=tuple(parse_pod(pod) for pod in sorted(pods, key=lambda pod: pod["metadata"]["name"])),
            missing=missing,
            service_revision=_service_revision(children, name),
            autoscaler_revision=_autoscaler_revision(children, name),
            model_commit=found_out.commit,
            unresolved=found_out.unresolved,
            pins=found_out.pins,
            monitored=monitored,
            scalable_by_keda=by_keda,
            routable=routable,
            autoscaler=await self._autoscaler(namespace, name, found, children),
            wishes=wishes(body, status.update),
            bundles=copies,
            golden=await golden.observed(namespace, name, spec, status.update, children),
            external_metrics=not _asks_for_external(spec) or await self.kube.registered(EXTERNAL_METRICS),
        )

    async def _children(self, namespace: str, name: str, optional: Iterable[Kind]) -> dict[ChildKey, Object]:
        """Whatever bears the labels or the name of a pool's child, whoever it belongs to."""
        lists = await asyncio.gather(*(self._labelled(kind, namespace, name) for kind in CHILD_KINDS))
        found = {
            ChildKey(body["kind"], body["metadata"]["name"]): body for bodies in lists for body in bodies
        }
        # A child that lost its labels, or an object of somebody else's in its place.
        expected = [*self._expected(name), *((kind, name) for kind in optional)]
        absent = [(kind, child) for kind, child in expected if ChildKey(kind.kind, child) not in found]
        bodies = await asyncio.gather(*(self.kube.get(kind, namespace, child) for kind, child in absent))
        return found | {
            ChildKey(kind.kind, child): body
            for (kind, child), body in zip(absent, bodies, strict=True)
            if body is not None
        }

    async def _labelled(self, kind: Kind, namespace: str, name: str) -> list[Object]:
        async def look() -> list[Object]:
            return await self.kube.list(kind, namespace, f"{names.LABEL_POOL}={name}")

        # Without policies of its own the operator does not watch them.
        watched = kind is not NETWORK_POLICY or self.network_policies
        if kind in STEADY and watched:
            return await self.kept.get((namespace, name), kind, look)
        return await look()

    async def _autoscaler(
        self, namespace: str, name: str, found: Mapping[ChildKey, Object], children: Mapping[ChildKey, Object]
    ) -> Object:
        """The autoscaler itself. KEDA's has the labels of its ScaledObject; it is never touched."""
        of_keda = keda_autoscaler(name, children)
        if of_keda is None:
            return children.get(ChildKey(AUTOSCALER.kind, name), {})
        seen = found.get(ChildKey(AUTOSCALER.kind, of_keda))
        return seen or await self.kube.get(AUTOSCALER, namespace, of_keda) or {}

    async def _unlabelled(
        self, namespace: str, name: str, found: Collection[ChildKey], status: PoolStatus
    ) -> dict[ChildKey, Object]:
        """Deployments that lost their labels: taken for absent, a serving one would get another template."""
        known = {status.serving_revision, *(item.name for item in status.revisions or ())}
        wanted = [names.deployment_name(name, revision) for revision in known if revision is not None]
        absent = [child for child in wanted if ChildKey(DEPLOYMENT.kind, child) not in found]
        lists = await asyncio.gather(
            *(self.kube.list(DEPLOYMENT, namespace, name=child) for child in sorted(absent))
        )
        return {
            ChildKey(DEPLOYMENT.kind, body["metadata"]["name"]): body for bodies in lists for body in bodies
        }

    async def _services(
        self, namespace: str, name: str, found: Collection[ChildKey], spec: PoolSpec | None
    ) -> dict[ChildKey, Object]:
        """Services without labels under names that revisions and a canary are about to have one under."""
        if spec is None:
            return {}
        wanted = names.deployment_name(name, revision_hash(spec))
        expected = {wanted, *(key.name for key in found if key.kind == DEPLOYMENT.kind)}
        if len(expected) > 1:
            expected.add(names.canary_service_name(name))
        elif spec.routing is None:
            return {}
        absent = sorted(child for child in expected if ChildKey(SERVICE.kind, child) not in found)
        bodies = await asyncio.gather(*(self.kube.get(SERVICE, namespace, child) for child in absent))
        return {
            ChildKey(SERVICE.kind, child): body
            for child, body in zip(absent, bodies, strict=True)
            if body is not None
        }

    def _expected(self, name: str) -> list[tuple[Kind, str]]:
        expected = [
            (SERVICE_ACCOUNT, name),
            (SERVICE, name),
            (SERVICE, names.metrics_service_name(name)),
            (AUTOSCALER, name),
            (DISRUPTION_BUDGET, name),
        ]
        if self.network_policies:
            expected.append((NETWORK_POLICY, name))
        return expected


def _where(condition: bool, *kinds: Kind) -> tuple[Kind, ...]:
    return kinds if condition else ()


def _asks_for_external(spec: PoolSpec | None) -> bool:
    scaling = spec.autoscaling if spec is not None else None
    # KEDA serves them itself, wherever it works.
    return scaling is not None and scaling.provider == Provider.HPA and scaling.metric.type != MetricType.CPU


def _service_revision(children: Mapping[ChildKey, Object], name: str) -> str | None:
    service = children.get(ChildKey("Service", name))
    return section(service, "spec", "selector").get(names.LABEL_REVISION)


def _autoscaler_revision(children: Mapping[ChildKey, Object], name: str) -> str | None:
    for kind in (AUTOSCALER, SCALED_OBJECT):
        target = section(children.get(ChildKey(kind.kind, name)), "spec", "scaleTargetRef").get("name")
        if target:
            return str(target).rsplit("-", 1)[-1]
    return None
