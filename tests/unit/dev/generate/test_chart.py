from pathlib import Path

import pytest
import yaml

from zerolayer_dev.generate import chart, crd


def test_copy_differs_from_the_definition_by_the_annotation_alone() -> None:
    (definition,) = crd.render(Path()).values()
    (copy,) = chart.render(Path()).values()
    expected = yaml.safe_load(definition)
    expected["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    assert yaml.safe_load(copy) == expected


def test_definition_of_another_layout_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crd, "render", lambda _root: {"crds/x.yaml": "metadata: {name: x}\n"})
    with pytest.raises(ValueError, match="no single line"):
        chart.render(Path())
