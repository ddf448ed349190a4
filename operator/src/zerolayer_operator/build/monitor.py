"""The PodMonitor, for clusters with the Prometheus operator."""

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import POD_MONITOR
from zerolayer_operator.build.meta import Object, child
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.observe.state import ObservedPool


def pod_monitor(pool: ObservedPool, defaults: Defaults) -> Object:
    """Has every worker scraped, whatever its revision; pool and revision become labels of what it says."""
    spec = {
        "selector": {"matchLabels": {names.LABEL_POOL: pool.name}},
        "podTargetLabels": [names.LABEL_POOL, names.LABEL_REVISION],
        "podMetricsEndpoints": [
            {"port": "ops", "path": "/metrics", "interval": defaults.pod_monitor_interval}
        ],
    }
    # The pool's own labels come last: by them the operator finds its children.
    labels = {**defaults.pod_monitor_labels, **names.owned_by_pool(pool.name)}
    return child(pool, POD_MONITOR, pool.name, {"spec": spec}, labels=labels)
