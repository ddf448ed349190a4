"""The CustomResourceDefinition of ZeroLayerPool, made from the pydantic models."""

import typing
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from zerolayer_dev.generate import kubernetes_schema
from zerolayer_operator.api import names
from zerolayer_operator.api.base import ApiModel
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.api.types import KUBE_REF

Schema = dict[str, Any]

FILE_NAME: Final = f"{names.GROUP}_{names.PLURAL}.yaml"

HEADER: Final = (
    "# Generated from zerolayer_operator.api by `make generate`; edit the models, not this file.\n"
)

NAME_RULES: Final = (
    {
        "rule": f"self.metadata.name.size() <= {names.MAX_POOL_NAME}",
        "message": f"metadata.name must have at most {names.MAX_POOL_NAME} characters: "
        "other names contain it",
    },
    {
        "rule": "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "message": "metadata.name must be a DNS-1035 label: a-z, 0-9 and '-', beginning with a letter",
    },
)

PRINTER_COLUMNS: Final = (
    {
        "name": "Ready",
        "type": "string",
        "jsonPath": ".status.ready",
        "description": "Ready and wanted workers of the serving revision.",
    },
    {
        "name": "Phase",
        "type": "string",
        "jsonPath": ".status.phase",
        "description": "One word that sums up the conditions.",
    },
    {
        "name": "Anchor",
        "type": "string",
        "jsonPath": ".status.anchor.active.version",
        "description": "Version of the knowledge anchor that serves.",
    },
    {
        "name": "Canary",
        "type": "string",
        "jsonPath": ".status.update.canary",
        "description": "Share of the requests that the revision being introduced gets.",
    },
    {
        "name": "Util",
        "type": "integer",
        "jsonPath": ".status.scaling.utilization",
        "description": "Share of the ready workers' capacity in use, in percent.",
    },
    {
        "name": "Window",
        "type": "string",
        "jsonPath": ".status.scaling.window",
        "description": "Delay before a scale-down.",
    },
    {
        "name": "Age",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "description": "Time since the pool was made.",
    },
    {
        "name": "Model",
        "type": "string",
        "jsonPath": ".spec.model.name",
        "priority": 1,
        "description": "Id that clients send as model.",
    },
    {
        "name": "Image",
        "type": "string",
        "jsonPath": ".status.revisions[-1:].image",
        "priority": 1,
        "description": "Worker image of the latest revision.",
    },
)

_DROPPED: Final = frozenset({"title", "additionalProperties", "propertyNames", "$defs"})


def build() -> Schema:
    """The whole CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.PLURAL}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "names": {
                "kind": names.KIND,
                "listKind": f"{names.KIND}List",
                "plural": names.PLURAL,
                "singular": names.SINGULAR,
                "shortNames": [names.SHORT_NAME],
                "categories": ["all"],
            },
            "scope": "Namespaced",
            "versions": [_version()],
        },
    }


def _version() -> Schema:
    return {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [dict(column) for column in PRINTER_COLUMNS],
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "schema": {"openAPIV3Schema": _root()},
    }


def _root() -> Schema:
    spec = {**model_schema(PoolSpec), "description": "What the user wants of the pool."}
    status = {
        **model_schema(PoolStatus),
        "description": "What the operator found and did; written by it alone.",
    }
    return {
        "type": "object",
        "description": "A pool of workers that serve one model and are warmed up before they get requests.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Version of this API: zerolayer.dev/v1alpha1."},
            "kind": {"type": "string", "description": "Kind of the object: ZeroLayerPool."},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
        "x-kubernetes-validations": [dict(rule) for rule in NAME_RULES],
    }


def model_schema(model: type[ApiModel]) -> Schema:
    """A model as a structural schema with its rules."""
    generated = model.model_json_schema(by_alias=True)
    known = kubernetes_schema.definitions()
    return _structural(generated, generated.get("$defs", {}), known, model)


def _structural(schema: Schema, defs: Schema, known: Schema, model: type[ApiModel] | None) -> Schema:
    """Turn pydantic's JSON schema into a structural one: no references, no unions with null, no titles."""
    schema, model = _resolve(schema, defs, model)
    if KUBE_REF in schema:
        target = kubernetes_schema.structural(schema[KUBE_REF], known)
        return {
            **target,
            **{key: value for key, value in schema.items() if key not in {KUBE_REF, "title", "default"}},
        }
    result: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: _field(name, child, defs, known, model) for name, child in value.items()}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            result[key] = _structural(value, defs, known, None)
        elif key == "const":
            result["enum"] = [value]
        elif key not in _DROPPED and value is not None:
            result[key] = _without_nulls(value) if key == "default" else value
    if model is not None and model.rules:
        result["x-kubernetes-validations"] = [
            {"rule": rule.cel, "message": rule.message} for rule in model.rules
        ]
    return result


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(child) for key, child in value.items() if child is not None}
    return value


def _field(name: str, schema: Schema, defs: Schema, known: Schema, owner: type[ApiModel] | None) -> Schema:
    field = _field_of(owner, name)
    child = _structural(schema, defs, known, _model_in(field) if field else None)
    if child.get("type") == "array" and field is not None:
        item = _model_in(field)
        child.pop("x-kubernetes-validations", None)
        if item is not None and item.rules:
            raise ValueError(f"{name}: rules on list items are not supported; their cost would need a bound")
    if child.get("type") == "integer":
        child.setdefault("format", "int32")
    return child


def _field_of(owner: type[ApiModel] | None, alias: str) -> FieldInfo | None:
    if owner is None:
        return None
    return next((field for field in owner.model_fields.values() if field.alias == alias), None)


def _model_in(field: FieldInfo) -> type[ApiModel] | None:
    """The model that a field's annotation holds, also inside ``Optional`` or a tuple."""
    queue: list[Any] = [field.annotation]
    while queue:
        candidate = queue.pop()
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return typing.cast("type[ApiModel]", candidate)
        queue.extend(typing.get_args(candidate))
    return None


def _resolve(
    schema: Schema, defs: Schema, model: type[ApiModel] | None
) -> tuple[Schema, type[ApiModel] | None]:
    """Fill in references and drop ``null`` alternatives; siblings such as the description win."""
    while "$ref" in schema or "anyOf" in schema:
        siblings = {key: value for key, value in schema.items() if key not in {"$ref", "anyOf"}}
        if "$ref" in schema:
            target = defs[str(schema["$ref"]).rsplit("/", 1)[-1]]
        else:
            alternatives = [option for option in schema["anyOf"] if option.get("type") != "null"]
            if len(alternatives) != 1:
                raise ValueError(f"a structural schema can't hold a union: {schema}")
            target = alternatives[0]
        schema = {**target, **siblings}
    return schema, model


class _PlainDumper(yaml.SafeDumper):
    """Writes repeated values out instead of using anchors, which are hard to read and to diff."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def render(root: Path) -> dict[str, str]:
    """The file's path below the repository's root, and its text; ``root`` holds nothing it depends on."""
    del root
    text = HEADER + yaml.dump(build(), Dumper=_PlainDumper, sort_keys=False, width=120, allow_unicode=True)
    return {f"crds/{FILE_NAME}": text}
