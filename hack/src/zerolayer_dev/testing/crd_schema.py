"""Checks a ZeroLayerPool as the API server would, without one: types, limits, unknown fields, rules."""

import json
from functools import cache
from typing import Any

from jsonschema.protocols import Validator
from pydantic import ValidationError

from zerolayer_dev.generate import crd
from zerolayer_dev.testing import go_patterns
from zerolayer_operator.api.spec import PoolSpec

Object = dict[str, Any]


def errors(pool: Object) -> list[str]:
    """Returns what the API server would object to, each with the field's path; empty for a good pool."""
    found = [f"{error.json_path}: {error.message}" for error in _validator().iter_errors(pool)]
    try:
        PoolSpec.model_validate_json(json.dumps(pool.get("spec", {})))
    except ValidationError as error:
        found += [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
    return found


@cache
def _validator() -> Validator:
    schema = crd.build()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["apiVersion"]["const"] = f"{crd.names.GROUP}/{crd.names.VERSION}"
    schema["properties"]["kind"]["const"] = crd.names.KIND
    # Checked by the API server before it looks at the definition.
    schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
    return go_patterns.Draft202012Validator(closed(schema))


def closed(schema: Object) -> Object:
    """A structural schema that refuses unknown fields, as strict field validation does."""
    strict = dict(schema)
    if "properties" in schema:
        strict["properties"] = {name: closed(child) for name, child in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            strict.setdefault("additionalProperties", False)
    if isinstance(schema.get("items"), dict):
        strict["items"] = closed(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        strict["additionalProperties"] = closed(schema["additionalProperties"])
    return strict
