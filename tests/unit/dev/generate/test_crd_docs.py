from pathlib import Path

import pytest

from zerolayer_dev.generate import crd_docs


@pytest.fixture(scope="module")
def page() -> str:
    (text,) = crd_docs.render(Path()).values()
    return text


@pytest.mark.parametrize(
    "row",
    [
        "| `spec.model.name` | string | required | Id that",
        '| `spec.worker.device` | `cpu` or `gpu` | `"gpu"` | ',
        "| `spec.worker.count` | integer 1 to 16 |  | ",
        "| `spec.worker.nodeSelector` | map of string to string |  | ",
        "| `spec.worker.tolerations` | list of Kubernetes' Toleration |  | ",
        "| `spec.worker.affinity` | Kubernetes' Affinity |  | ",
        "| `spec.paused` | boolean | `false` | ",
        "| `status.observedGeneration` | integer from 0 |  | ",
        "| `status.conditions[].reason` | string | required | ",
    ],
)
def test_row(page: str, row: str) -> None:
    assert page.count(f"\n{row}") == 1


def test_every_row_says_something(page: str) -> None:
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert all(line.rstrip(" |").endswith(".") for line in rows), [
        line for line in rows if not line.rstrip(" |").endswith(".")
    ]


def test_insides_of_kubernetes_types_are_left_to_kubernetes(page: str) -> None:
    assert "nodeAffinity" not in page


def test_rules_are_listed_once(page: str) -> None:
    rules = page.split("## Rules over several fields")[1].strip().splitlines()
    assert len(rules) == len(set(rules)) > 5
    assert any("spec.replicas and spec.autoscaling" in rule for rule in rules)
