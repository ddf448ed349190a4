"""What must hold of the tree itself."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import promise_index

ROOT = repo_root()
MAX_LINES = 400
UNFINISHED = re.compile("|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X:", "NotImplemented" + "Error"]))

TARGETS = {
    "demo",
    "demo-down",
    "demo-update",
    "test",
    "test-unit",
    "test-integration",
    "test-model",
    "test-chart",
    "test-e2e",
    "test-long",
    "promise",
    "bench",
    "lint",
    "fmt",
    "images",
    "models",
    "plugin",
    "cluster-up",
    "cluster-down",
    "kubectl",
    "generate",
    "generate-check",
    "setup",
    "prerequisites",
    "pre-commit",
    "clean",
}


def tracked(*patterns: str) -> list[Path]:
    """Returns tracked and new files that git does not ignore."""
    listing = subprocess.run(
        [
            "git",
            "-C",
            str(ROOT),
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
            "--",
            *patterns,
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def source_files() -> list[Path]:
    return tracked(
        "operator/*.py", "worker/*.py", "plugin/*.py", "hack/*.py", "tests/*.py", "benchmarks/*.py"
    )


def field_paths(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Walks a structural schema down to its last field."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from field_paths(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from field_paths(schema[key], f"{path}[]")


def link_targets(text: str) -> list[str]:
    """Returns what a page links to inside the tree, and the documents that it names by path."""
    named = [f"{ROOT}/{name}" for name in re.findall(r"`(docs/[\w/-]+\.md)`", text)]
    return re.findall(r"\]\((?!https?:|#)([^)#]+)", text) + named


def test_no_package_hides_the_operator_module_of_python() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert [path for path in (ROOT / "tests").rglob("operator") if path.is_dir()] == []


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked("*.py", "*.md", "*.yaml", "*.tpl", "*.toml", "Makefile", "*Dockerfile")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if UNFINISHED.search(line)
    ]

    assert found == []


def test_no_path_of_the_checkout_stands_in_the_tree() -> None:
    here = f"{ROOT.parent}/"

    assert [path for path in tracked("*.py", "*.md", "*.yaml", "*.toml") if here in path.read_text()] == []


def test_every_link_between_documents_leads_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in tracked("*.md")
        for target in link_targets(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]

    assert broken == []


def test_what_the_readme_claims_is_a_promise() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    claims = text.partition("## What it promises")[2].partition("\n## ")[0]
    named = {
        name
        for group in re.findall(r"\(((?:`[a-z-]+`(?:, )?)+)\)", claims)
        for name in re.findall(r"`(.+?)`", group)
    }
    promised = {test.promise for test in promise_index.scan(ROOT)}

    assert len(named) > 10
    assert sorted(named - promised) == []


def test_makefile_lists_its_targets_first() -> None:
    listing = subprocess.run(["make", "-C", str(ROOT)], check=True, capture_output=True, text=True).stdout

    listed = set(re.findall(r"^\s*(?:\x1b\[1m)?([a-z0-9-]+) ", listing, re.MULTILINE))
    assert listed >= TARGETS


@pytest.mark.promise("layers")
def test_no_module_over_400_lines(figures) -> None:
    """No module of the project has more than 400 lines."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    longest = max(lengths, key=lambda path: lengths[path])

    figures(modules=len(lengths), longest=str(longest.relative_to(ROOT)), lines=lengths[longest])
    assert [str(path) for path, lines in lengths.items() if lines > MAX_LINES] == []


@pytest.mark.promise("layers")
def test_every_field_of_the_crd_is_described(figures) -> None:
    """Every field of the custom resource has a description for `kubectl explain`."""
    (path,) = tracked("crds/*.yaml")
    (version,) = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["versions"]
    fields = dict(field_paths(version["schema"]["openAPIV3Schema"], ""))
    del fields[""], fields[".metadata"]  # the API server describes these two
    named = {name: schema for name, schema in fields.items() if not name.endswith("[]")}

    figures(fields=len(named))
    assert [name for name, schema in named.items() if len(schema.get("description", "")) < 10] == []


@pytest.mark.promise("layers")
@pytest.mark.long  # not for its time: `make test` has run the same as `make lint`
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "command",
    [["lint-imports"], ["pyright"], ["ruff", "check", "."], ["ruff", "format", "--check", "."]],
    ids=["import contracts", "pyright strict", "ruff", "format"],
)
def test_checkers_are_clean(command: list[str]) -> None:
    """Import contracts, pyright strict and ruff are clean."""
    program = Path(sys.executable).parent / command[0]
    result = subprocess.run([program, *command[1:]], cwd=ROOT, check=False, capture_output=True, text=True)

    assert result.returncode == 0, result.stdout + result.stderr
