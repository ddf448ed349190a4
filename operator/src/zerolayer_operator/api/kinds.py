"""The kinds of objects that the operator deals with."""

from dataclasses import dataclass
from typing import Final

from zerolayer_operator.api import names


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object and where the API server keeps it."""

    api_version: str
    kind: str
    plural: str

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """The URL path of an object, or of the collection where no name is given."""
        root = f"/api/{self.api_version}" if "/" not in self.api_version else f"/apis/{self.api_version}"
        scope = f"/namespaces/{namespace}" if namespace else ""
        return "/".join(part for part in (root + scope, self.plural, name, subresource) if part)


POOL: Final = Kind(names.API_VERSION, names.KIND, names.PLURAL)
DEPLOYMENT: Final = Kind("apps/v1", "Deployment", "deployments")
SERVICE: Final = Kind("v1", "Service", "services")
SERVICE_ACCOUNT: Final = Kind("v1", "ServiceAccount", "serviceaccounts")
POD: Final = Kind("v1", "Pod", "pods")
SECRET: Final = Kind("v1", "Secret", "secrets")
CLAIM: Final = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
CONFIG_MAP: Final = Kind("v1", "ConfigMap", "configmaps")
JOB: Final = Kind("batch/v1", "Job", "jobs")
EVENT: Final = Kind("v1", "Event", "events")
AUTOSCALER: Final = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
DISRUPTION_BUDGET: Final = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICY: Final = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
EXTERNAL_METRICS: Final = "external.metrics.k8s.io/v1beta1"
"""The API that autoscalers ask for metrics of other things than pods; clusters need not have it."""

POD_MONITOR: Final = Kind("monitoring.coreos.com/v1", "PodMonitor", "podmonitors")
"""Comes with the Prometheus operator; not among the kinds that every cluster has."""

SCALED_OBJECT: Final = Kind("keda.sh/v1alpha1", "ScaledObject", "scaledobjects")
"""Comes with KEDA, as the next one does; not among the kinds that every cluster has."""

TRIGGER_AUTHENTICATION: Final = Kind("keda.sh/v1alpha1", "TriggerAuthentication", "triggerauthentications")

HTTP_ROUTE: Final = Kind("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes")
"""Comes with the Gateway API; not among the kinds that every cluster has."""

OPTIONAL_KINDS: Final = (POD_MONITOR, SCALED_OBJECT, TRIGGER_AUTHENTICATION, HTTP_ROUTE)

CHILD_KINDS: Final = (
    SERVICE_ACCOUNT,
    NETWORK_POLICY,
    SERVICE,
    DEPLOYMENT,
    AUTOSCALER,
    DISRUPTION_BUDGET,
)
