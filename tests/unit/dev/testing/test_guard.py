import json
from pathlib import Path

import pytest

from zerolayer_dev.testing.guard import ForeignContextError, require_own_context


def kubeconfig(path: Path, current: str, *contexts: str) -> Path:
    content = {"current-context": current, "contexts": [{"name": name} for name in contexts]}
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("context", ["zerolayer-x", "kind-x"])
def test_the_suites_own_cluster_is_accepted(tmp_path: Path, context: str) -> None:
    require_own_context(kubeconfig(tmp_path / "config", context, context), "x")


@pytest.mark.parametrize(
    ("current", "contexts"),
    [
        ("production", ["production"]),
        ("zerolayer-y", ["zerolayer-y"]),
        ("zerolayer-x", ["zerolayer-x", "production"]),
        ("production", ["zerolayer-x"]),
    ],
)
def test_any_other_is_refused(tmp_path: Path, current: str, contexts: list[str]) -> None:
    with pytest.raises(ForeignContextError, match="refusing"):
        require_own_context(kubeconfig(tmp_path / "config", current, *contexts), "x")
