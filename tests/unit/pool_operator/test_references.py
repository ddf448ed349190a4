"""The objects that a spec refers to."""

from typing import Any

import pytest

from zerolayer_dev.testing.observed import spec
from zerolayer_operator.observe.references import missing, references

TOKEN = {"name": "hf", "key": "token"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        (
            {"model": {"name": "m", "source": {"persistentVolumeClaim": {"claimName": "c"}}}},
            [("PersistentVolumeClaim", "c", "spec.model.source.persistentVolumeClaim.claimName")],
        ),
        (
            {"model": {"name": "m", "source": {"huggingFace": {"repo": "a/b", "tokenSecretRef": TOKEN}}}},
            [("Secret", "hf", "spec.model.source.huggingFace.tokenSecretRef.name")],
        ),
        (
            {
                "autoscaling": {
                    "maxReplicas": 2,
                    "provider": "KEDA",
                    "metric": {"type": "Utilization"},
                    "scaleDown": {"mode": "Fixed"},
                    "prometheus": {
                        "bearerTokenSecretRef": {"name": "t", "key": "k"},
                        "tls": {
                            "caSecretRef": {"name": "ca", "key": "k"},
                            "certificateSecretRef": {"name": "c"},
                        },
                    },
                }
            },
            [
                ("Secret", "t", "spec.autoscaling.prometheus.bearerTokenSecretRef.name"),
                ("Secret", "ca", "spec.autoscaling.prometheus.tls.caSecretRef.name"),
                ("Secret", "c", "spec.autoscaling.prometheus.tls.certificateSecretRef.name"),
            ],
        ),
        (
            {
                "anchor": {
                    "version": "v1",
                    "digest": f"sha256:{'1' * 64}",
                    "source": {"persistentVolumeClaim": {"claimName": "c", "path": "b"}},
                }
            },
            [("PersistentVolumeClaim", "c", "spec.anchor.source.persistentVolumeClaim.claimName")],
        ),
        ({"apiKeySecretRef": {"name": "keys"}}, [("Secret", "keys", "spec.apiKeySecretRef.name")]),
        (
            {"worker": {"device": "cpu", "imagePullSecrets": [{"name": "a"}, {"name": "b"}]}},
            [
                ("Secret", "a", "spec.worker.imagePullSecrets"),
                ("Secret", "b", "spec.worker.imagePullSecrets"),
            ],
        ),
    ],
    ids=["none", "claim", "token", "prometheus", "anchor", "keys", "pull secrets"],
)
def test_only_names_that_the_spec_mentions(
    fields: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    found = [(item.kind.kind, item.name, item.field) for item in references(spec(**fields))]

    assert found == expected


class EverythingExists:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def exists(self, _kind: Any, _namespace: str, name: str) -> bool:
        self.asked.append(name)
        return True


@pytest.mark.parametrize("name", ["../../other/secrets/x", "..", "x?watch=true", "x/y", "x\n", "X", ""])
async def test_what_is_no_name_is_missing_and_never_asked_for(name: str) -> None:
    kube = EverythingExists()
    wanted = spec(worker={"device": "cpu", "imagePullSecrets": [{"name": "good"}, {"name": name}]})

    (problem,) = await missing(kube, "default", wanted)  # type: ignore[arg-type]

    assert problem.reason == "SecretNotFound"
    assert kube.asked == ["good"]
