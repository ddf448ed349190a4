"""Schemas of Kubernetes' own types, from a trimmed copy of its OpenAPI document.

The copy (``kubernetes_schema.json``) holds just the definitions that a ZeroLayerPool embeds. For another
version of Kubernetes make it anew: ``python -m zerolayer_dev.generate.kubernetes_schema SWAGGER_JSON``, where
the document lies in the module ``k8s.io/kubernetes`` at ``api/openapi-spec/swagger.json``.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from zerolayer_operator.api.types import CONFIG_KEY, DNS_1123_SUBDOMAIN

Schema = dict[str, Any]

TRIMMED: Final = Path(__file__).with_suffix(".json")

EMBEDDED: Final[tuple[str, ...]] = (
    "io.k8s.api.autoscaling.v2.HPAScalingRules",
    "io.k8s.api.core.v1.Affinity",
    "io.k8s.api.core.v1.EnvVar",
    "io.k8s.api.core.v1.LocalObjectReference",
    "io.k8s.api.core.v1.ResourceRequirements",
    "io.k8s.api.core.v1.Toleration",
    "io.k8s.api.core.v1.TopologySpreadConstraint",
)

# Parts that need something a pool can't express (a claim or volume of the user's) or a feature gate.
LEFT_OUT: Final = {
    "io.k8s.api.core.v1.ResourceRequirements": ("claims",),
    "io.k8s.api.core.v1.EnvVarSource": ("fileKeyRef",),
    "io.k8s.api.autoscaling.v2.HPAScalingRules": ("tolerance",),
}

_OBJECT_NAME: Final[Schema] = {"minLength": 1, "maxLength": 253, "pattern": DNS_1123_SUBDOMAIN}
_KEY: Final[Schema] = {"minLength": 1, "maxLength": 253, "pattern": CONFIG_KEY}

# Limits that Kubernetes checks in code rather than in its schema; stated here so that a pool is refused at
# once instead of its pods later, and so that CEL rules over these fields have a bounded cost.
TIGHTENED: Final[dict[tuple[str, str], Schema]] = {
    ("io.k8s.api.core.v1.EnvVar", "name"): {"minLength": 1, "maxLength": 256},
    ("io.k8s.api.core.v1.LocalObjectReference", "name"): _OBJECT_NAME,
    ("io.k8s.api.core.v1.SecretKeySelector", "name"): _OBJECT_NAME,
    ("io.k8s.api.core.v1.SecretKeySelector", "key"): _KEY,
    ("io.k8s.api.core.v1.ConfigMapKeySelector", "name"): _OBJECT_NAME,
    ("io.k8s.api.core.v1.ConfigMapKeySelector", "key"): _KEY,
    ("io.k8s.api.core.v1.Toleration", "operator"): {"enum": ["Exists", "Equal"]},
    ("io.k8s.api.core.v1.Toleration", "effect"): {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
    ("io.k8s.api.core.v1.TopologySpreadConstraint", "maxSkew"): {"minimum": 1},
    ("io.k8s.api.core.v1.TopologySpreadConstraint", "minDomains"): {"minimum": 1},
    ("io.k8s.api.core.v1.TopologySpreadConstraint", "whenUnsatisfiable"): {
        "enum": ["DoNotSchedule", "ScheduleAnyway"]
    },
    ("io.k8s.api.core.v1.TopologySpreadConstraint", "nodeAffinityPolicy"): {"enum": ["Honor", "Ignore"]},
    ("io.k8s.api.core.v1.TopologySpreadConstraint", "nodeTaintsPolicy"): {"enum": ["Honor", "Ignore"]},
    ("io.k8s.api.core.v1.NodeSelectorRequirement", "operator"): {
        "enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    },
    ("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement", "operator"): {
        "enum": ["In", "NotIn", "Exists", "DoesNotExist"]
    },
    ("io.k8s.api.core.v1.PreferredSchedulingTerm", "weight"): {"minimum": 1, "maximum": 100},
    ("io.k8s.api.core.v1.WeightedPodAffinityTerm", "weight"): {"minimum": 1, "maximum": 100},
    ("io.k8s.api.autoscaling.v2.HPAScalingRules", "stabilizationWindowSeconds"): {
        "minimum": 0,
        "maximum": 3600,
    },
    ("io.k8s.api.autoscaling.v2.HPAScalingRules", "selectPolicy"): {"enum": ["Max", "Min", "Disabled"]},
    ("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies"): {"minItems": 1, "maxItems": 16},
    ("io.k8s.api.autoscaling.v2.HPAScalingPolicy", "type"): {"enum": ["Pods", "Percent"]},
    ("io.k8s.api.autoscaling.v2.HPAScalingPolicy", "value"): {"minimum": 1},
    ("io.k8s.api.autoscaling.v2.HPAScalingPolicy", "periodSeconds"): {"minimum": 1, "maximum": 1800},
}

QUANTITY: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}

KEPT_EXTENSIONS: Final = frozenset(
    {
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-int-or-string",
    }
)


def references(schema: object) -> Iterator[str]:
    """Names of the definitions that a schema refers to."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield str(value).rsplit("/", 1)[-1]
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from references(item)


def trim(swagger: Schema) -> dict[str, Schema]:
    """The definitions that pools embed, and those they refer to."""
    definitions = swagger["definitions"]
    wanted: dict[str, Schema] = {}
    queue: list[str] = list(EMBEDDED)
    while queue:
        name = queue.pop()
        if name in wanted:
            continue
        definition = dict(definitions[name])
        properties = {
            key: value
            for key, value in definition.get("properties", {}).items()
            if key not in LEFT_OUT.get(name, ())
        }
        if properties:
            definition["properties"] = properties
        wanted[name] = definition
        queue.extend(references(definition))
    return dict(sorted(wanted.items()))


def definitions() -> dict[str, Schema]:
    """The trimmed copy."""
    loaded: dict[str, Schema] = json.loads(TRIMMED.read_text(encoding="utf-8"))
    return loaded


def structural(name: str, known: dict[str, Schema]) -> Schema:
    """A definition as a structural schema: references filled in, what a CRD can't hold left out."""
    if name.endswith(".Quantity"):
        return {**QUANTITY, "description": known[name]["description"]}
    schema = _expand(known[name], known)
    for field, limits in ((f, limits) for (owner, f), limits in TIGHTENED.items() if owner == name):
        schema["properties"][field].update(limits)
    if name.endswith((".EnvVar", ".LocalObjectReference", "KeySelector")):
        schema["required"] = sorted({"name", *schema.get("required", ())})
    return schema


def _expand(schema: Schema, known: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        target = structural(str(schema["$ref"]).rsplit("/", 1)[-1], known)
        return {
            **target,
            **({"description": _tidy(schema["description"])} if "description" in schema else {}),
        }
    expanded: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            expanded[key] = {field: _expand(child, known) for field, child in value.items()}
        elif key in {"items", "additionalProperties"}:
            expanded[key] = _expand(value, known)
        elif key == "description":
            expanded[key] = _tidy(value)
        elif not key.startswith("x-") or key in KEPT_EXTENSIONS:
            expanded[key] = value
    return expanded


def _tidy(description: str) -> str:
    return re.sub(r"\s+", " ", description).strip()


def main() -> None:
    """Write the trimmed copy from the document named on the command line."""
    swagger = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    TRIMMED.write_text(json.dumps(trim(swagger), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
