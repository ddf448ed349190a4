"""The chart, rendered by the real helm."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from zerolayer_dev.cluster import binaries
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import crd_schema
from zerolayer_dev.testing.preparation import prepare

Object = dict[str, Any]


class Helm:
    """Runs helm on the chart, without a cluster."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self.chart = repo_root() / "charts" / "zerolayer"

    def __call__(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._program), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def template(self, values: Object, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self(
            "template",
            "zerolayer",
            str(self.chart),
            "--namespace=zerolayer-system",
            "--values=-",
            *arguments,
            stdin=json.dumps(values),
        )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetches helm and builds promtool where they are missing."""
    prepare(session, "helm", lambda: binaries.ensure(["helm"]))
    prepare(session, "promtool", lambda: binaries.ensure(["promtool"]))


@pytest.fixture(scope="session")
def helm() -> Helm:
    return Helm(binaries.ensure(["helm"])["helm"])


@pytest.fixture(scope="session")
def promtool() -> Callable[..., str]:
    """Runs promtool in a folder: `promtool(folder, "check", "rules", "rules.yaml")`."""
    program = binaries.ensure(["promtool"])["promtool"]

    def run(folder: Path, *arguments: str) -> str:
        done = subprocess.run(
            [str(program), *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def render(helm: Helm) -> Callable[..., list[Object]]:
    """Renders the chart with some values and returns its objects."""
    cache: dict[str, list[Object]] = {}

    def render(values: Object | None = None) -> list[Object]:
        key = json.dumps(values or {}, sort_keys=True)
        if key not in cache:
            done = helm.template(values or {})
            assert done.returncode == 0, done.stderr
            cache[key] = [item for item in yaml.safe_load_all(done.stdout) if item]
        return cache[key]

    return render


def values_files() -> list[Path]:
    return sorted((Path(__file__).parent / "values").glob("*.yaml"))


@pytest.fixture(params=values_files(), ids=lambda path: path.stem)
def rendered(request: pytest.FixtureRequest, render: Callable[..., list[Object]]) -> list[Object]:
    """The chart's objects, once for each file in `values/`."""
    return render(yaml.safe_load(request.param.read_text(encoding="utf-8")))


@pytest.fixture
def crd_errors() -> Callable[[Object], list[str]]:
    """What the API server would object to in a pool."""
    return crd_schema.errors
