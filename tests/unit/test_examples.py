from pathlib import Path
from typing import Any

import pytest
import yaml

from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import crd_schema
from zerolayer_operator.api.spec import PoolSpec

EXAMPLES = sorted((repo_root() / "examples").glob("*.yaml"))


def load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_fits_the_definition(path: Path) -> None:
    assert crd_schema.errors(load(path)) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_says_what_it_shows(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")


def test_examples_have_names_of_their_own() -> None:
    names = [load(path)["metadata"]["name"] for path in EXAMPLES]
    assert len(set(names)) == len(names)


def test_every_source_but_host_path_has_an_example() -> None:
    kinds = {next(iter(load(path)["spec"]["model"]["source"])) for path in EXAMPLES}
    assert kinds == {"builtin", "huggingFace", "persistentVolumeClaim", "image"}


def test_together_the_examples_show_every_field_of_the_spec() -> None:
    """All but those that only a cluster of one's own can fill."""
    shown = {name for path in EXAMPLES for name in load(path)["spec"]}
    fields = {field.alias for field in PoolSpec.model_fields.values()}
    assert fields - shown == {"paused"}
