"""Puts autoscaled targets into a cluster that runs no pods, and plays their series."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, cast

from kubernetes.aio.client import ApiClient
from kubernetes.aio.dynamic import DynamicClient

from zerolayer_dev.testing.hpa_series import DEFAULTS, Series, Setting
from zerolayer_dev.testing.metrics_api import Answer, MetricsApi
from zerolayer_operator.decide.hpa_replay import Behavior, Rules

SYNC_S = 1.0
_GROUP, _VERSION, _PLURAL, _KIND = "testing.zerolayer.dev", "v1", "scalables", "Scalable"
_MERGE = "application/merge-patch+json"

SCALABLE_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{_PLURAL}.{_GROUP}"},
    "spec": {
        "group": _GROUP,
        "scope": "Namespaced",
        "names": {"plural": _PLURAL, "kind": _KIND, "singular": "scalable"},
        "versions": [
            {
                "name": _VERSION,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
            }
        ],
    },
}
"""Something with a scale and without pods."""


class Stage:
    """The targets and autoscalers in one namespace.

    Args:
        client: of the cluster.
        namespace: of all objects.
        series: to play.
    """

    def __init__(self, client: ApiClient, namespace: str, series: Sequence[Series]) -> None:
        self._client = DynamicClient(client)
        self._targets = f"/apis/{_GROUP}/{_VERSION}/namespaces/{namespace}/{_PLURAL}"
        self._autoscalers = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
        self._series = {item.name: item for item in series}
        self._started: float | None = None
        self.changed_at: dict[str, list[float]] = {}
        """By name, when each setting was in place, in seconds since the epoch."""

    def answer(self, metric: str, *_where: str) -> Answer:
        """Returns what a metric is now, whatever the query's namespace and selector."""
        return self._series[metric].answer(self._second())

    async def set_up(self) -> None:
        """Makes every target and then its autoscaler."""
        for series in self._series.values():
            target = {
                "apiVersion": f"{_GROUP}/{_VERSION}",
                "kind": _KIND,
                "metadata": {"name": series.name},
                "spec": {"replicas": series.size},
            }
            await self._request("post", self._targets, target)
            await self._report(series.name, series.size)
            self.changed_at[series.name] = [time.time()]
            await self._request("post", self._autoscalers, autoscaler(series, 0))

    async def play(self, api: MetricsApi, seconds: float) -> None:
        """Lets the series go on for so many seconds, with all that people do meanwhile."""
        self._started = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for series in self._series.values():
                tasks.create_task(self._lead(series, api))
            tasks.create_task(self._follow(seconds))

    def _second(self) -> float:
        return 0.0 if self._started is None else time.monotonic() - self._started

    async def _lead(self, series: Series, api: MetricsApi) -> None:
        """Changes one series' spec and size at their times, well between two syncs."""
        changes: list[tuple[float, int | None]] = [(at, None) for at, _ in series.settings[1:]]
        for at, size in sorted(changes + list(series.edits), key=lambda change: change[0]):
            await asyncio.sleep(max(0.0, at - self._second()))
            await api.next_query(series.name, timeout_s=1.5 * SYNC_S)
            await asyncio.sleep(0.3 * SYNC_S)
            if size is None:
                await self._respecify(series)
            else:
                path = f"{self._targets}/{series.name}"
                await self._request("patch", path, {"spec": {"replicas": size}}, content_type=_MERGE)

    async def _respecify(self, series: Series) -> None:
        index = len(self.changed_at[series.name])
        await self._request("put", f"{self._autoscalers}/{series.name}", autoscaler(series, index))
        self.changed_at[series.name].append(time.time())

    async def _follow(self, seconds: float) -> None:
        """Reports the size that a target was given as the one it has, some time after it was given."""
        while self._second() < seconds:
            for target in (await self._request("get", self._targets))["items"]:
                size = target["spec"]["replicas"]
                if target["status"].get("replicas") != size:
                    await self._report(target["metadata"]["name"], size)
            await asyncio.sleep(0.5 * SYNC_S)

    async def _report(self, name: str, size: int) -> None:
        status = {"replicas": size, "selector": f"app={name}"}
        await self._request(
            "patch", f"{self._targets}/{name}/status", {"status": status}, content_type=_MERGE
        )

    async def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, **parameters: Any
    ) -> dict[str, Any]:
        # The dynamic client is untyped.
        client = cast("Any", self._client)
        return await client.request(
            method, path, body=body, serializer=lambda _, data: data, _request_timeout=30, **parameters
        )


def autoscaler(series: Series, index: int) -> dict[str, Any]:
    """Returns a series' autoscaler with one of its settings; its queries' selector tells which."""
    setting = series.settings[index][1]
    metric = {"name": series.name, "selector": {"matchLabels": {"setting": str(index)}}}
    target = {"type": "AverageValue", "averageValue": f"{series.target_milli}m"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": series.name},
        "spec": {
            "scaleTargetRef": {"apiVersion": f"{_GROUP}/{_VERSION}", "kind": _KIND, "name": series.name},
            "minReplicas": setting.bounds.minimum,
            "maxReplicas": setting.bounds.maximum,
            "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
            **_behavior(setting),
        },
    }


def setting_of(selector: str) -> int:
    """Returns which of a series' settings a query was made under."""
    return int(selector.partition("=")[2])


def _behavior(setting: Setting) -> dict[str, Any]:
    behavior = setting.behavior
    if behavior is None:
        return {}
    return {"behavior": {"scaleUp": _rules(behavior, "up"), "scaleDown": _rules(behavior, "down")}}


def _rules(behavior: Behavior, direction: str) -> dict[str, Any]:
    """Returns one direction's rules, without what is the default anyway."""
    rules, default = (cast("Rules", getattr(item, direction)) for item in (behavior, DEFAULTS))
    policies = [
        {"type": policy.kind.value, "value": policy.value, "periodSeconds": policy.period_s}
        for policy in rules.policies
    ]
    return {
        **({"stabilizationWindowSeconds": rules.window_s} if rules.window_s != default.window_s else {}),
        **({"policies": policies} if rules.policies != default.policies else {}),
        **({"selectPolicy": rules.select.value} if rules.select is not default.select else {}),
        **({"tolerance": str(rules.tolerance)} if rules.tolerance != default.tolerance else {}),
    }
