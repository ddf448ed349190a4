"""Finds promises in the test files without importing them.

Importing every test would cost torch and a minute; the marks are literals, so the syntax tree is enough.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TEST_FOLDERS = ("tests", "benchmarks")


@dataclass(frozen=True, slots=True)
class PromiseTest:
    """One test that shows a promise.

    Attributes:
        promise: the promise's name.
        nodeid: `path::Class::function`, as pytest writes it, without parameters.
        sentence: first line of the test's docstring, empty where it has none.
        long: whether the test is left out of `make test`.
    """

    promise: str
    nodeid: str
    sentence: str
    long: bool


def scan(root: Path) -> list[PromiseTest]:
    """Returns every promise test under `root`, ordered by promise and node id."""
    found = [
        test
        for folder in _TEST_FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
        if "promise(" in (text := path.read_text(encoding="utf-8"))
        for test in _tests_of(path.relative_to(root).as_posix(), text)
    ]
    return sorted(found, key=lambda test: (test.promise, test.nodeid))


def _tests_of(nodeid: str, text: str) -> Iterator[PromiseTest]:
    module = ast.parse(text)
    marks = [mark for node in module.body for mark in _pytestmark(node)]
    yield from _walk(module.body, nodeid, marks)


def _walk(body: list[ast.stmt], prefix: str, inherited: list[ast.expr]) -> Iterator[PromiseTest]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _walk(node.body, f"{prefix}::{node.name}", inherited + node.decorator_list)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield from _promises(node, f"{prefix}::{node.name}", inherited + node.decorator_list)


def _promises(
    node: ast.FunctionDef | ast.AsyncFunctionDef, nodeid: str, marks: list[ast.expr]
) -> Iterator[PromiseTest]:
    sentence = (ast.get_docstring(node) or "").partition("\n")[0]
    is_long = any(_mark_name(mark) == "long" for mark in marks)
    for mark in marks:
        if _mark_name(mark) == "promise" and isinstance(mark, ast.Call):
            for argument in mark.args:
                yield PromiseTest(ast.literal_eval(argument), nodeid, sentence, is_long)


def _pytestmark(node: ast.stmt) -> list[ast.expr]:
    if not isinstance(node, ast.Assign) or not any(
        isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
    ):
        return []
    return node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]


def _mark_name(mark: ast.expr) -> str:
    """Returns `x` of `pytest.mark.x` and `pytest.mark.x(...)`, otherwise an empty string."""
    target = mark.func if isinstance(mark, ast.Call) else mark
    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "pytest.mark":
        return target.attr
    return ""
