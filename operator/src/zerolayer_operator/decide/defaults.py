"""The settings that children depend on."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the operator's installation decides for every pool.

    Attributes:
        worker_image: Worker image of pools that name none.
        worker_image_pull_policy: Pull policy of pools that name none.
        network_policy: Whether every pool gets a NetworkPolicy.
        image_volumes: Whether nodes can mount an image as a volume.
        allow_host_path: Whether a model may lie in a folder of the node.
        operator_namespace: Namespace whose pods may reach workers' operations port.
        prometheus_namespace: Another such namespace.
        pod_monitor_interval: How often Prometheus scrapes workers, where pools have a PodMonitor.
        pod_monitor_labels: Further labels of these, for a Prometheus that selects by them.
        keda: Whether pools may be autoscaled by KEDA.
        prometheus_addresses: Addresses of Prometheus that pools may name; the first is for those that don't.
    """

    worker_image: str
    worker_image_pull_policy: str = "IfNotPresent"
    network_policy: bool = True
    image_volumes: bool = True
    allow_host_path: bool = False
    operator_namespace: str = "zerolayer-system"
    prometheus_namespace: str = "monitoring"
    pod_monitor_interval: str = "15s"
    pod_monitor_labels: Mapping[str, str] = field(default_factory=dict[str, str])
    keda: bool = False
    prometheus_addresses: tuple[str, ...] = ()
