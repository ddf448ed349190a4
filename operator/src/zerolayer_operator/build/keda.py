"""KEDA's objects: a ScaledObject in place of a HorizontalPodAutoscaler, and its credentials.

KEDA makes a HorizontalPodAutoscaler of its own from a ScaledObject. Only the ScaledObject is ever written.
"""

from typing import Final

from zerolayer_operator.api import names, queries
from zerolayer_operator.api.kinds import SCALED_OBJECT, TRIGGER_AUTHENTICATION
from zerolayer_operator.api.metric import MetricSpec
from zerolayer_operator.api.model import SecretKeyReference
from zerolayer_operator.api.prometheus import PrometheusSpec
from zerolayer_operator.api.scaling import AutoscalingSpec
from zerolayer_operator.build.meta import Object, child
from zerolayer_operator.build.scaling import Setting, behavior, scale_target
from zerolayer_operator.observe.state import ObservedPool

POLLING_S: Final = 15
"""How often KEDA looks whether a pool without workers is to have some, in seconds."""


def scaled_object(
    pool: ObservedPool, scaling: AutoscalingSpec, serving: str, setting: Setting, address: str | None
) -> Object:
    """The ScaledObject.

    Args:
        pool: The pool.
        scaling: What the user wants of it.
        serving: The revision that it sizes.
        setting: What it is given beside.
        address: The Prometheus to ask; ``None`` for CPU use, which comes from elsewhere.
    """
    trigger = _cpu(scaling.metric)
    if address is not None:
        trigger = _query(pool, scaling, serving, setting, address)
    spec: Object = {
        "scaleTargetRef": scale_target(pool, serving),
        "minReplicaCount": setting.floor,
        "maxReplicaCount": scaling.max_replicas,
        "advanced": {
            # Deleted when the pool changes its provider, it must leave the size alone.
            "restoreToOriginalReplicaCount": False,
            "horizontalPodAutoscalerConfig": {"behavior": behavior(scaling, setting)},
        },
        "triggers": [trigger],
    }
    if setting.idle_s is not None:
        spec |= _sleep(setting.idle_s)
    return child(pool, SCALED_OBJECT, pool.name, {"spec": spec})


def _sleep(idle_s: int) -> Object:
    """To no worker at all and back.

    Without the initial period a ScaledObject that is new, as after a change of the provider, would stop a
    pool's workers at KEDA's first look.
    """
    return {
        "idleReplicaCount": 0,
        "pollingInterval": POLLING_S,
        "cooldownPeriod": idle_s,
        "initialCooldownPeriod": idle_s,
    }


def _cpu(metric: MetricSpec) -> Object:
    metadata = {"value": str(metric.average), "containerName": names.WORKER_NAME}
    return {"type": "cpu", "metricType": "Utilization", "metadata": metadata}


def _query(
    pool: ObservedPool, scaling: AutoscalingSpec, serving: str, setting: Setting, address: str
) -> Object:
    labels = queries.workers(pool.namespace, pool.name, serving)
    metadata = {
        "serverAddress": address,
        "query": queries.query(scaling.metric, labels, setting.range_s),
        "threshold": str(scaling.metric.average),
        # KEDA would take no data and NaN for no load, and give the workers up.
        "ignoreNullValues": "false",
    }
    trigger: Object = {"type": "prometheus", "metricType": "AverageValue", "metadata": metadata}
    if scaling.credentials_for_keda is not None:
        metadata["authModes"] = ",".join(_modes(scaling.credentials_for_keda))
        trigger["authenticationRef"] = {"name": pool.name}
    return trigger


def _modes(prometheus: PrometheusSpec) -> list[str]:
    """How KEDA shows who it is; the server's authority counts in each of these modes."""
    modes = (
        ["tls"] if prometheus.tls is not None and prometheus.tls.certificate_secret_ref is not None else []
    )
    return modes + (["bearer"] if prometheus.bearer_token_secret_ref is not None else [])


def trigger_authentication(pool: ObservedPool, prometheus: PrometheusSpec) -> Object:
    """Tells KEDA which Secrets hold the credentials; the operator never reads them."""
    found: list[Object] = []
    if prometheus.bearer_token_secret_ref is not None:
        found.append(_parameter("bearerToken", prometheus.bearer_token_secret_ref))
    tls = prometheus.tls
    if tls is not None and tls.ca_secret_ref is not None:
        found.append(_parameter("ca", tls.ca_secret_ref))
    if tls is not None and tls.certificate_secret_ref is not None:
        name = tls.certificate_secret_ref.name
        found += [
            {"parameter": "cert", "name": name, "key": "tls.crt"},
            {"parameter": "key", "name": name, "key": "tls.key"},
        ]
    return child(pool, TRIGGER_AUTHENTICATION, pool.name, {"spec": {"secretTargetRef": found}})


def _parameter(name: str, reference: SecretKeyReference) -> Object:
    return {"parameter": name, "name": reference.name, "key": reference.key}
