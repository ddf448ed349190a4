"""Pools on a running cluster, for tests: made, changed, waited for, and explained when they fail."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import httpx
import pykube

from zerolayer_dev.testing.kube import Manifest, objects
from zerolayer_dev.testing.waiting import StillWaitingError, wait_for

DEMO_MODEL = "smollm2-135m-instruct"
POOL_LABEL = "zerolayer.dev/pool"
REVISION_LABEL = "zerolayer.dev/revision"


class Kubectl(Protocol):
    """Runs kubectl against the cluster, with `stdin` as its input, and returns what it printed."""

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Raises an error that carries kubectl's own message where it fails."""
        ...


class ZeroLayerPool(pykube.objects.NamespacedAPIObject):
    """The custom resource, as pykube reads it."""

    version = "zerolayer.dev/v1alpha1"
    endpoint = "zerolayerpools"
    kind = "ZeroLayerPool"


def manifest(name: str, namespace: str, spec: Manifest) -> Manifest:
    """Returns a pool as it is written."""
    return {
        "apiVersion": ZeroLayerPool.version,
        "kind": ZeroLayerPool.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def cpu_pool(name: str, namespace: str, **spec: Any) -> Manifest:
    """Returns a small pool on the demo's model that starts, drains and changes quickly: it has no canaries.

    Args:
        name: of the pool.
        namespace: of the pool.
        spec: fields that replace the ones here.
    """
    small: Manifest = {
        "model": {"name": DEMO_MODEL, "source": {"builtin": {"name": DEMO_MODEL}}},
        "worker": {
            "device": "cpu",
            # Of a model this small, what bfloat16 rounds off is enough to change answers, and CPUs differ in
            # whether `auto` takes it.
            "dtype": "float32",
            "maxModelLen": 1024,
            "resources": {
                "requests": {"cpu": "100m", "memory": "700Mi"},
                "limits": {"memory": "2Gi"},
            },
        },
        "warmup": {"maxTokens": 4},
        "update": {"strategy": "Immediate"},
        "drainSeconds": 30,
        "terminationGracePeriodSeconds": 45,
    }
    return manifest(name, namespace, small | spec)


class Pool:
    """One pool of a test."""

    def __init__(self, api: pykube.HTTPClient, kubectl: Kubectl, namespace: str, name: str) -> None:
        self.api = api
        self.kubectl = kubectl
        self.namespace = namespace
        self.name = name

    @property
    def manifest(self) -> Manifest:
        """The pool as the API server holds it now."""
        return ZeroLayerPool.objects(self.api, namespace=self.namespace).get_by_name(self.name).obj

    @property
    def status(self) -> Manifest:
        """Its status, empty before the operator wrote one."""
        return self.manifest.get("status", {})

    def condition(self, kind: str) -> Manifest:
        """Returns one condition, empty where there is none."""
        return next((found for found in self.status.get("conditions", ()) if found["type"] == kind), {})

    def change(self, **spec: Any) -> None:
        """Merges fields into the spec; None removes a field."""
        patch = json.dumps({"spec": spec})
        self.kubectl("-n", self.namespace, "patch", "zlp", self.name, "--type=merge", f"--patch={patch}")

    def read(self, kind: str, name: str) -> Manifest:
        """Returns an object in the pool's namespace, empty where there is none."""
        said = self.kubectl("-n", self.namespace, "get", kind, name, "-o", "json", "--ignore-not-found")
        return json.loads(said) if said.strip() else {}

    def delete(self, *, wait: bool = True) -> None:
        """Deletes the pool; with `wait` until the API server has forgotten it."""
        self.kubectl("-n", self.namespace, "delete", "zlp", self.name, f"--wait={str(wait).lower()}")

    def wait_ready(self, replicas: int, *, seconds: float = 240) -> None:
        """Waits until the newest spec is served by exactly that many ready workers, reachable by its Service.

        Raises:
            StillWaitingError: it is not within `seconds`; the message explains the pool's state.
        """

        def ready(pool: Manifest) -> bool:
            status = pool.get("status", {})
            return (
                status.get("observedGeneration") == pool["metadata"]["generation"]
                and status.get("phase") == "Ready"
                and status.get("readyReplicas") == replicas
                and status.get("ready") == f"{replicas}/{replicas}"
            )

        self.wait(lambda: self.manifest, ready, what=f"{replicas} ready workers", seconds=seconds)
        if replicas:
            # kube-proxy hears of a ready worker a moment after the operator did.
            self.wait(self._is_reachable, bool, what="the Service to lead to a worker", seconds=60)

    def _is_reachable(self) -> bool:
        try:
            httpx.get(f"{self.url}/readyz", trust_env=False, timeout=2)
        except httpx.TransportError:
            return False
        return True

    def wait_phase(self, phase: str, *, seconds: float = 60) -> None:
        """Waits for a phase."""
        self.wait(
            lambda: self.status.get("phase"),
            lambda found: found == phase,
            what=f"phase {phase}",
            seconds=seconds,
        )

    def wait_condition(self, kind: str, status: str, *, reason: str = "", seconds: float = 60) -> Manifest:
        """Waits for a condition and returns it; an empty reason stands for any."""
        return self.wait(
            lambda: self.condition(kind),
            lambda found: found.get("status") == status and reason in ("", found.get("reason")),
            what=f"condition {kind}={status} {reason}",
            seconds=seconds,
        )

    def wait(
        self, look: Callable[[], Any], until: Callable[[Any], bool], *, what: str, seconds: float
    ) -> Any:
        """Waits, and explains the pool's whole state where that was in vain."""
        try:
            return wait_for(look, until=until, what=f"pool {self.name}: {what}", seconds=seconds)
        except StillWaitingError as error:
            error.add_note(self.explain())
            raise

    def pods(self, *, revision: str = "") -> list[Manifest]:
        """Returns the pool's pods that are not on their way out, oldest first."""
        return [pod for pod in self.all_pods(revision=revision) if "deletionTimestamp" not in pod["metadata"]]

    def all_pods(self, *, revision: str = "") -> list[Manifest]:
        """Returns the pool's pods, those that are being deleted too, oldest first."""
        selector = {POOL_LABEL: self.name} | ({REVISION_LABEL: revision} if revision else {})
        return objects(self.api, pykube.Pod, namespace=self.namespace, selector=selector)

    def deployments(self) -> dict[str, Manifest]:
        """Returns the pool's Deployments by revision."""
        found = objects(
            self.api, pykube.Deployment, namespace=self.namespace, selector={POOL_LABEL: self.name}
        )
        return {deployment["metadata"]["labels"][REVISION_LABEL]: deployment for deployment in found}

    def events(self) -> list[Manifest]:
        """Returns the Events about the pool itself, oldest first."""
        about = {"involvedObject.name": self.name, "involvedObject.kind": ZeroLayerPool.kind}
        return objects(self.api, pykube.Event, namespace=self.namespace, field_selector=about)

    @property
    def url(self) -> str:
        """Base URL of the pool's Service, reachable from the host."""
        service = pykube.Service.objects(self.api, namespace=self.namespace).get_by_name(self.name).obj
        return f"http://{service['spec']['clusterIP']}"

    def explain(self) -> str:
        """Returns all there is to know about a pool that is not as it should be."""
        sections = {
            "pool": ("get", "zlp", self.name, "-o", "yaml", "--show-managed-fields=false"),
            "children": ("get", "deploy,rs,pod,svc,hpa,pdb,endpointslice", "-o", "wide"),
            "events": ("get", "events", "--sort-by=.metadata.creationTimestamp"),
            "workers": (
                "logs",
                "-l",
                f"{POOL_LABEL}={self.name}",
                "--all-containers",
                "--tail=60",
                "--prefix",
            ),
        }
        return "\n".join(
            f"--- {title}\n{self._said('-n', self.namespace, *arguments)}"
            for title, arguments in sections.items()
        )

    def _said(self, *arguments: str) -> str:
        try:
            return self.kubectl(*arguments)
        except Exception as error:  # noqa: BLE001  a failing dump must not hide the failure it explains
            return f"kubectl failed: {error}"


def names(manifests: list[Manifest]) -> set[str]:
    """Returns the names of objects."""
    return {manifest["metadata"]["name"] for manifest in manifests}


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Tells whether a pod's Ready condition holds."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)


def restarts(pods: list[Manifest]) -> int:
    """Returns how often containers of the pods were started again."""
    return sum(
        container["restartCount"] for pod in pods for container in pod["status"].get("containerStatuses", ())
    )
