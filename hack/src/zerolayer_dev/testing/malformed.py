"""Good and malformed pools, generated from the CRD's schema.

Every limit in the schema gives one malformed pool: a wrong type, a number out of range, a text too long or of
the wrong form, a word that is none of the choices, a list too long, a missing or an unknown field. Rules over
several fields can't be broken mechanically; `BROKEN_RULES` says how, and a test checks that none is left out.
"""

import copy
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

Schema = dict[str, Any]
Path = tuple[str | int, ...]

# Fields whose schema is Kubernetes' own: the pydantic models hand them on unchecked.
EMBEDDED: Final = frozenset(
    {
        "affinity",
        "env",
        "imagePullSecrets",
        "resources",
        "scaleUp",
        "tolerations",
        "topologySpreadConstraints",
    }
)
EMBEDDED_DEPTH: Final = 2

MINIMAL: Final[Schema] = {
    "model": {"name": "m", "source": {"builtin": {"name": "tiny"}}},
    "worker": {"device": "cpu"},
}

_ANCHOR: Final[Schema] = {
    "version": "v1",
    "digest": f"sha256:{'0' * 64}",
    "source": {"configMap": {"name": "facts"}},
}

# Values where the smallest one of the right form is forbidden by a rule.
GOOD_VALUES: Final[Schema] = {
    "spec.model": MINIMAL["model"],
    "spec.model.source": MINIMAL["model"]["source"],
    "spec.intents.allowed": ["balanced"],
    "spec.intents.allowed[0]": "balanced",
    "spec.terminationGracePeriodSeconds": 200,
    "spec.autoscaling.scaleDown.minWindow": "1m",
    "spec.autoscaling.scaleDown.maxWindow": "1h",
    "spec.autoscaling.prometheus.tls": {"certificateSecretRef": {"name": "a"}},
    "spec.autoscaling.cost.perReplicaHour": 1,
    "spec.anchor": _ANCHOR,
    "spec.anchor.source": _ANCHOR["source"],
    "spec.update.maxSoak": "72h",
}

# A value of the right form for each pattern in the schema.
_DIGEST: Final = str(_ANCHOR["digest"])
SAMPLES: Final = ("a", "1h", "a/b", "/a", "example.com/gpu", "300s", "1", "https://a", "EUR", _DIGEST)

# Message of each rule over several fields, and a spec that breaks it.
BROKEN_RULES: Final[dict[str, Schema]] = {
    "spec.anchor.source must name exactly one of": {"anchor": {**_ANCHOR, "source": {}}},
    "spec.anchor.source.persistentVolumeClaim.path": {
        "anchor": {**_ANCHOR, "source": {"persistentVolumeClaim": {"claimName": "a", "path": "../b"}}}
    },
    "spec.anchor.source.image.path": {
        "anchor": {**_ANCHOR, "source": {"image": {"reference": "a", "path": "../b"}}}
    },
    "spec.update.soak must not exceed": {"update": {"soak": "2h", "maxSoak": "1h"}},
    "spec.update.checks.queries must each": {
        "update": {"checks": {"queries": [{"name": "a", "query": "up", "threshold": "1"}] * 2}}
    },
    "spec.replicas and spec.autoscaling exclude each other": {
        "replicas": 2,
        "autoscaling": {"maxReplicas": 3},
    },
    "spec.autoscaling.metric.type CPU is for spec.worker.device: cpu only": {
        "worker": {"device": "gpu"},
        "autoscaling": {"maxReplicas": 3},
    },
    "spec.autoscaling.metric.target is needed": {
        "autoscaling": {"maxReplicas": 3, "metric": {"type": "Concurrency"}}
    },
    "spec.autoscaling.metric.target is in percent of the CPU request": {
        "autoscaling": {"maxReplicas": 3, "metric": {"type": "CPU", "target": 10001}}
    },
    "spec.autoscaling.metric.target is in percent of what a worker can do": {
        "autoscaling": {"maxReplicas": 3, "metric": {"type": "Utilization", "target": 101}}
    },
    "spec.autoscaling.metric.query is needed": {
        "autoscaling": {"maxReplicas": 3, "metric": {"type": "PromQL", "target": 1}}
    },
    "spec.autoscaling.scaleDown.minWindow must not exceed": {
        "autoscaling": {"maxReplicas": 3, "scaleDown": {"minWindow": "2m", "maxWindow": "119s"}}
    },
    "spec.autoscaling.scaleDown.fixedWindow needs": {
        "autoscaling": {"maxReplicas": 3, "scaleDown": {"fixedWindow": "2m"}}
    },
    "spec.autoscaling.scaleDown.minWindow and maxWindow are for": {
        "autoscaling": {"maxReplicas": 3, "scaleDown": {"mode": "Fixed", "minWindow": "1m"}}
    },
    "spec.autoscaling.scaleDown.maxWindow must be at most": {
        "autoscaling": {"maxReplicas": 3, "scaleDown": {"maxWindow": "3601s"}}
    },
    "spec.autoscaling.prometheus.tls.certificateSecretRef is for KEDA": {
        "autoscaling": {
            "maxReplicas": 3,
            "scaleDown": {"mode": "Flatness"},
            "prometheus": {"tls": {"certificateSecretRef": {"name": "a"}}},
        }
    },
    "spec.autoscaling.cost.latencyPenalty needs a price": {
        "autoscaling": {
            "maxReplicas": 3,
            "cost": {"perReplicaHour": 0, "latencyPenalty": {"target": "1s"}},
        }
    },
    "spec.autoscaling.cost.latencyPenalty.target must be between": {
        "autoscaling": {
            "maxReplicas": 3,
            "cost": {"perReplicaHour": 1, "latencyPenalty": {"target": "5m1ms"}},
        }
    },
    "spec.autoscaling.scaleToZero needs": {
        "autoscaling": {"maxReplicas": 3, "provider": "KEDA", "scaleToZero": True}
    },
    "spec.autoscaling.prometheus is for": {
        "autoscaling": {
            "maxReplicas": 3,
            "provider": "KEDA",
            "scaleDown": {"mode": "Fixed"},
            "prometheus": {"address": "http://a"},
        }
    },
    "spec.autoscaling.prometheus.tls.caSecretRef alone": {
        "autoscaling": {
            "maxReplicas": 3,
            "provider": "KEDA",
            "metric": {"type": "Utilization"},
            "prometheus": {"tls": {"caSecretRef": {"name": "a", "key": "a"}}},
        }
    },
    "spec.autoscaling.prometheus.tls must name": {
        "autoscaling": {
            "maxReplicas": 3,
            "provider": "KEDA",
            "metric": {"type": "Utilization"},
            "prometheus": {"bearerTokenSecretRef": {"name": "a", "key": "a"}, "tls": {}},
        }
    },
    "spec.autoscaling.prometheus.tls needs an https": {
        "autoscaling": {
            "maxReplicas": 3,
            "provider": "KEDA",
            "metric": {"type": "Utilization"},
            "prometheus": {"address": "http://a", "tls": {"certificateSecretRef": {"name": "a"}}},
        }
    },
    "spec.drainSeconds + 10 must not exceed": {"drainSeconds": 111},
    "spec.autoscaling.minReplicas must not exceed": {"autoscaling": {"minReplicas": 4, "maxReplicas": 3}},
    "spec.autoscaling.scaleDown.fixedWindow must be at most": {
        "autoscaling": {"maxReplicas": 3, "scaleDown": {"mode": "Fixed", "fixedWindow": "61m"}}
    },
    "spec.intents.default must be one of": {"intents": {"default": "creative", "allowed": ["balanced"]}},
    "spec.intents.allowed must not name an intent twice": {"intents": {"allowed": ["balanced", "balanced"]}},
    "spec.model.source must name exactly one of": {
        "model": {
            "name": "m",
            "source": {"builtin": {"name": "tiny"}, "persistentVolumeClaim": {"claimName": "c"}},
        }
    },
    "spec.model.source.image.path must not contain": {
        "model": {"name": "m", "source": {"image": {"reference": "a", "path": "a/../b"}}}
    },
    "spec.model.source.persistentVolumeClaim.path must not contain": {
        "model": {"name": "m", "source": {"persistentVolumeClaim": {"claimName": "c", "path": "a/.."}}}
    },
    "spec.model.source.hostPath.path must not contain": {
        "model": {"name": "m", "source": {"hostPath": {"path": "/a/../etc"}}}
    },
    "spec.worker.resourceName and spec.worker.count are for": {"worker": {"device": "cpu", "count": 1}},
    "spec.worker.resources must not name the accelerator": {
        "worker": {"device": "gpu", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    },
    "spec.worker.env must not name variables ZEROLAYER_": {
        "worker": {"device": "cpu", "env": [{"name": "ZEROLAYER_PORT", "value": "1"}]}
    },
}


@dataclass(frozen=True, slots=True)
class Sample:
    """A pool's spec made for one field.

    Attributes:
        path: The field, as the API server names it.
        how: What was done to it.
        spec: The spec.
        embedded: Whether the field's schema is Kubernetes' own.
        by_rule: Whether only a rule over several fields forbids it.
    """

    path: str
    how: str
    spec: Schema
    embedded: bool = False
    by_rule: bool = False


def spec_schema(crd: Schema) -> Schema:
    """The schema of a pool's spec."""
    root: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return root["properties"]["spec"]


def good(schema: Schema) -> Iterator[Sample]:
    """A good pool for each field, with a value of its form."""
    for path, field in fields(schema):
        value = GOOD_VALUES.get(named(path), example(field))
        yield Sample(named(path), "good", placed(schema, path, value), embedded=is_embedded(path))


def malformed(schema: Schema) -> Iterator[Sample]:
    """A malformed pool for each limit in the schema, and for each rule over several fields."""
    for path, field in fields(schema):
        for how, value in _broken(field):
            yield Sample(named(path), how, placed(schema, path, value), embedded=is_embedded(path))
        if field.get("type") == "object" and "properties" in field:
            yield from _broken_object(schema, path, field)
    for message, change in BROKEN_RULES.items():
        yield Sample(message, "rule", {**copy.deepcopy(MINIMAL), **copy.deepcopy(change)}, by_rule=True)


def rules(schema: Schema) -> Iterator[str]:
    """The messages of all rules over several fields that hold for one object alone."""
    for rule in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" not in rule["rule"]:
            yield rule["message"]
    for child in schema.get("properties", {}).values():
        yield from rules(child)


def fields(schema: Schema, path: Path = ("spec",)) -> Iterator[tuple[Path, Schema]]:
    """Every field below a schema, with its path; the first item stands for all of a list."""
    depth = len(path) - next((at for at, key in enumerate(path) if key in EMBEDDED), len(path))
    if depth > EMBEDDED_DEPTH:
        return
    for name, child in schema.get("properties", {}).items():
        yield (*path, name), child
        yield from fields(child, (*path, name))
    if isinstance(schema.get("items"), dict):
        yield (*path, 0), schema["items"]
        yield from fields(schema["items"], (*path, 0))


def is_embedded(path: Path) -> bool:
    """Whether a path leads into a schema of Kubernetes' own."""
    return any(key in EMBEDDED for key in path[:-1])


def named(path: Path) -> str:
    """A path as the API server writes it."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}"
    return text.removeprefix(".")


def example(schema: Schema) -> Any:
    """A small value that a schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    kind = schema.get("type")
    if kind == "object":
        return {name: example(schema["properties"][name]) for name in schema.get("required", ())}
    if kind == "array":
        return [example(schema["items"])] * schema.get("minItems", 0)
    scalars = {"boolean": False, "string": _text(schema)}
    return scalars.get(str(kind), max(schema.get("minimum", 1), 1))


def _text(schema: Schema) -> str:
    pattern = schema.get("pattern", "")
    shortest = schema.get("minLength", 0)
    return next((text for text in SAMPLES if re.search(pattern, text) and len(text) >= shortest), "")


def placed(schema: Schema, path: Path, value: Any) -> Schema:
    """A small good spec that holds a value at a path, with whatever its parents require."""
    spec = copy.deepcopy(MINIMAL)
    _make_way(spec, path)
    here: Any = spec
    at = schema
    for key, following in itertools.pairwise(path[1:]):
        at = at["items"] if isinstance(key, int) else at["properties"][key]
        if isinstance(key, int):
            here = here[0]
            continue
        if isinstance(following, int):
            here[key] = [example(at["items"])]
        else:
            here[key] = {**example(at), **here.get(key, {})}
        here = here[key]
    here[path[-1]] = value
    return spec


def _make_way(spec: Schema, path: Path) -> None:
    """Take out what excludes a field, and put in what it goes with."""
    if path[:3] == ("spec", "model", "source") and path[3:]:
        spec["model"]["source"] = {}
    if path[:2] == ("spec", "worker") and path[2:3] and path[2] in {"resourceName", "count"}:
        spec["worker"]["device"] = "gpu"
    if "prometheus" in path:
        named = {"prometheus": {"bearerTokenSecretRef": {"name": "a", "key": "a"}}} if "tls" in path else {}
        fixed = {"scaleDown": {"mode": "Fixed"}}
        spec["autoscaling"] = {"provider": "KEDA", "metric": {"type": "Utilization"}, **fixed, **named}
    if path[-1] == "fixedWindow":
        spec["autoscaling"] = {"scaleDown": {"mode": "Fixed"}}
    if path[:2] == ("spec", "anchor") and path[2:]:
        spec["anchor"] = {**_ANCHOR, "source": {}} if path[3:] else dict(_ANCHOR)
    if path[-2:] == ("metric", "query"):
        spec["autoscaling"] = {"metric": {"type": "PromQL", "target": 1}}


def _broken(schema: Schema) -> Iterator[tuple[str, Any]]:
    if schema.get("x-kubernetes-int-or-string"):
        yield "wrong type", {"a": 1}
        return
    wrong = {
        "string": 17,
        "integer": "many",
        "number": "much",
        "boolean": "maybe",
        "array": "x",
        "object": "x",
    }
    if schema.get("type") in wrong:
        yield "wrong type", wrong[schema["type"]]
    if "enum" in schema:
        yield "none of the choices", "no-such-choice"
        return
    yield from _out_of_range(schema)


def _out_of_range(schema: Schema) -> Iterator[tuple[str, Any]]:
    if "minimum" in schema:
        yield "too small", schema["minimum"] - 1
    if "maximum" in schema:
        yield "too large", schema["maximum"] + 1
    if "maxLength" in schema:
        yield "too long", "a" * (schema["maxLength"] + 1)
    if schema.get("minLength"):
        yield "empty", ""
    if "pattern" in schema:
        yield "of the wrong form", "!? "
    if "maxItems" in schema and "items" in schema:
        yield "too many", [example(schema["items"])] * (schema["maxItems"] + 1)
    if schema.get("minItems"):
        yield "too few", []


def _broken_object(schema: Schema, path: Path, field: Schema) -> Iterator[Sample]:
    complete, embedded = example(field), any(key in EMBEDDED for key in path)
    unknown = placed(schema, path, {**complete, "nonsense": 1})
    yield Sample(f"{named(path)}.nonsense", "unknown", unknown, embedded=embedded)
    for name in field.get("required", ()):
        lacking = {key: value for key, value in complete.items() if key != name}
        yield Sample(f"{named(path)}.{name}", "missing", placed(schema, path, lacking), embedded=embedded)
