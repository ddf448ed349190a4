"""The CRD and the pydantic models say the same."""

import json
import re
from typing import Annotated, Any

import pytest
import yaml
from jsonschema.protocols import Validator
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from zerolayer_dev.generate import crd as generator
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import go_patterns, malformed
from zerolayer_dev.testing.crd_schema import closed
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.observe.parse import parse_spec

CRD = yaml.safe_load((repo_root() / "crds" / generator.FILE_NAME).read_text(encoding="utf-8"))
SCHEMA = malformed.spec_schema(CRD)
GOOD = list(malformed.good(SCHEMA))
BAD = list(malformed.malformed(SCHEMA))


def model_paths(model: type[BaseModel], prefix: str = "") -> set[str]:
    """Every field of a model and of the models inside it, by its name on the wire."""
    found: set[str] = set()
    for field in model.model_fields.values():
        path = f"{prefix}.{field.alias}"
        found.add(path)
        inner = generator._model_in(field)
        if inner is not None:
            found |= model_paths(inner, path)
    return found


def schema_paths(schema: dict[str, Any], prefix: str = "") -> set[str]:
    """Every field of a schema, down to where Kubernetes' own schemas begin."""
    found: set[str] = set()
    for name, child in schema.get("properties", {}).items():
        path = f"{prefix}.{name}"
        found.add(path)
        if name not in malformed.EMBEDDED:
            found |= schema_paths(child, path) | schema_paths(child.get("items", {}), path)
    return found


@pytest.fixture(scope="module")
def judge() -> Validator:
    return go_patterns.Draft202012Validator(closed(SCHEMA))


def test_file_is_what_the_models_generate() -> None:
    (text,) = generator.render(repo_root()).values()

    assert yaml.safe_load(text) == CRD


def patterns(schema: Any) -> set[str]:
    """Every pattern in a schema."""
    if isinstance(schema, list):
        return set[str]().union(*map(patterns, schema))
    if not isinstance(schema, dict):
        return set()
    own = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set[str]()
    return own.union(*map(patterns, schema.values()))


def test_no_pattern_means_something_else_to_the_models_than_to_the_api_server() -> None:
    r"""Such as `\s`: what one of them takes for a space the other would let through, and then not read."""
    assert {found for found in patterns(CRD) if re.search(r"\\[sSwWdDbBpP]|\[:", found)} == set()
    for pattern in patterns(SCHEMA):
        field = TypeAdapter(Annotated[str, Field(pattern=pattern)])
        for space in "\t\n\v\f\r \x1c\x85\xa0\u1680\u2003\u2028\u3000\ufeff":
            for text in (f"http://a{space}b", f"a{space}b", f"/a{space}b"):
                taken = go_patterns.compiled(pattern).search(text) is not None
                assert is_valid(field, text) == taken, (pattern, text)


def is_valid(field: TypeAdapter[str], text: str) -> bool:
    try:
        field.validate_python(text)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(("model", "part"), [(PoolSpec, "spec"), (PoolStatus, "status")])
def test_models_and_schema_have_the_same_fields(model: type[BaseModel], part: str) -> None:
    root = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]

    assert model_paths(model) == schema_paths(root[part])


@pytest.mark.parametrize("sample", GOOD, ids=lambda sample: sample.path)
def test_good_pool_is_accepted_by_both(sample: malformed.Sample, judge) -> None:
    assert list(judge.iter_errors(sample.spec)) == []
    PoolSpec.model_validate_json(json.dumps(sample.spec))


@pytest.mark.parametrize("sample", BAD, ids=lambda sample: f"{sample.path}: {sample.how}")
def test_malformed_pool_is_refused_by_both(sample: malformed.Sample, judge) -> None:
    if not sample.by_rule:
        assert list(judge.iter_errors(sample.spec)) != []
    if not sample.embedded:
        with pytest.raises(ValidationError):
            PoolSpec.model_validate_json(json.dumps(sample.spec))


def test_every_rule_is_broken_by_a_sample() -> None:
    for message in malformed.rules(SCHEMA):
        assert any(message.startswith(known) for known in malformed.BROKEN_RULES), message


@pytest.mark.parametrize("message", malformed.BROKEN_RULES)
def test_broken_rule_gives_the_same_message_from_the_models(message: str) -> None:
    spec, invalid = parse_spec({**malformed.MINIMAL, **malformed.BROKEN_RULES[message]})

    assert spec is None
    assert invalid is not None
    assert message in invalid


def test_every_text_and_list_outside_of_kubernetes_own_schemas_is_bounded() -> None:
    """Rules may only be expensive where nothing bounds what they walk over."""
    for path, field in malformed.fields(SCHEMA):
        if malformed.is_embedded(path):
            continue
        bounds = {"string": "maxLength", "array": "maxItems"}
        kind = field.get("type")
        if kind in bounds and "enum" not in field:
            assert bounds[kind] in field, malformed.named(path)
