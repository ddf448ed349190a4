from typing import Any

import pytest

LONG = "a" * 64


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"unknown": 1}, "unknown"),
        ({"image": {"repo": "x"}}, "repo"),
        ({"image": {"repository": ""}}, "image/repository"),
        ({"image": {"repository": "a b"}}, "image/repository"),
        ({"image": {"tag": "a:b"}}, "image/tag"),
        ({"image": {"tag": 1.2}}, "image/tag"),
        ({"image": {"pullPolicy": "Sometimes"}}, "image/pullPolicy"),
        ({"imagePullSecrets": [{"name": "a"}]}, "imagePullSecrets"),
        ({"imagePullSecrets": ["a", "a"]}, "imagePullSecrets"),
        ({"worker": {"image": ""}}, "worker/image"),
        ({"worker": {"imagePullPolicy": None}}, "worker"),
        ({"worker": {"imageVolumes": "yes"}}, "worker/imageVolumes"),
        ({"huggingFace": {"endpoint": "hub.example.org"}}, "huggingFace/endpoint"),
        ({"huggingFace": {"endpoint": "https://me:secret@hub.example.org"}}, "huggingFace/endpoint"),
        ({"registries": "ghcr.io"}, "registries"),
        ({"registries": ["ghcr.io/org"]}, "registries"),
        ({"registries": ["*.example.org"]}, "registries"),
        ({"registries": ["http://me:secret@registry.example.org"]}, "registries"),
        ({"allowHostPath": "true"}, "allowHostPath"),
        ({"watchNamespaces": "team-a"}, "watchNamespaces"),
        ({"watchNamespaces": ["Team"]}, "watchNamespaces"),
        ({"watchNamespaces": ["team-*"]}, "watchNamespaces"),
        ({"watchNamespaces": [LONG]}, "watchNamespaces"),
        ({"watchNamespaces": ["a", "a"]}, "watchNamespaces"),
        ({"crds": {"install": "true"}}, "crds/install"),
        ({"crds": {"keep": False}}, "keep"),
        ({"rbac": {"aggregateToDefaultRoles": 1}}, "rbac/aggregateToDefaultRoles"),
        ({"networkPolicy": {"enabled": "no"}}, "networkPolicy/enabled"),
        ({"networkPolicy": {"prometheusNamespace": ""}}, "networkPolicy/prometheusNamespace"),
        ({"networkPolicy": {"apiServerPorts": []}}, "networkPolicy/apiServerPorts"),
        ({"networkPolicy": {"apiServerPorts": [0]}}, "networkPolicy/apiServerPorts"),
        ({"networkPolicy": {"apiServerPorts": ["443"]}}, "networkPolicy/apiServerPorts"),
        ({"metrics": {"podMonitor": {"interval": "30"}}}, "interval"),
        ({"metrics": {"podMonitor": {"labels": {"a": 1}}}}, "labels"),
        ({"metrics": {"serviceMonitor": {}}}, "serviceMonitor"),
        ({"pools": {"podMonitor": {"enabled": 1}}}, "enabled"),
        ({"pools": {"podMonitor": {"interval": "often"}}}, "interval"),
        ({"pools": {"serviceMonitor": {}}}, "serviceMonitor"),
        ({"logLevel": "info"}, "logLevel"),
        ({"resyncInterval": 0}, "resyncInterval"),
        ({"resyncInterval": "60s"}, "resyncInterval"),
        ({"leaseDuration": 2}, "leaseDuration"),
        ({"leaseDuration": 15.5}, "leaseDuration"),
        ({"replicas": -1}, "replicas"),
        ({"replicas": 4}, "replicas"),
        ({"resources": {"request": {}}}, "request"),
        ({"podAnnotations": {"a": True}}, "podAnnotations"),
        ({"nodeSelector": ["a"]}, "nodeSelector"),
        ({"tolerations": {"key": "a"}}, "tolerations"),
        ({"affinity": []}, "affinity"),
        ({"priorityClassName": 1}, "priorityClassName"),
        ({"serviceAccount": {"name": "x"}}, "name"),
    ],
    ids=str,
)
def test_bad_value_is_refused_and_named(helm, values: dict[str, Any], field: str) -> None:
    done = helm.template(values)
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr
    assert field in done.stderr
