"""A pytest plugin: promises, their figures, and how many tests of each kind ran.

A promise is a claim of the README. `@pytest.mark.promise("name")` marks a test that shows it, the
`figures` fixture takes the numbers it measured, `--promise name` runs that promise alone. Figures are
printed last and kept in `out/promises/<name>.json`.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from zerolayer_dev.testing import promise_index, records
from zerolayer_dev.testing.figures import figure_text
from zerolayer_dev.testing.tables import table

KINDS = ("unit", "chart", "model", "gpu", "integration", "e2e", "benchmark")
_OUTCOMES = ("passed", "failed", "error", "interrupted", "skipped", "xfailed", "xpassed")
_ROWS = pytest.StashKey[list[records.Figures]]()
_FILES = pytest.StashKey[set[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--promise`."""
    parser.addoption(
        "--promise", action="append", default=[], metavar="NAME", help="run only the tests of this promise"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marks and refuses promises that nobody makes."""
    config.addinivalue_line("markers", "promise(name): a claim of the README, shown on real parts")
    config.addinivalue_line("markers", "last: runs after all other tests of its kind")
    tests = promise_index.scan(config.rootpath)
    known = sorted({test.promise for test in tests})
    wanted = _wanted(config)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise pytest.UsageError(
            f"no promise {', '.join(unknown)}; the promises are: {', '.join(known) or 'none'}"
        )
    config.stash[_FILES] = {
        config.rootpath / test.nodeid.partition("::")[0] for test in tests if test.promise in wanted
    }
    if not hasattr(config, "workerinput"):  # processes of pytest-xdist hand their reports to the first one
        config.pluginmanager.register(_Recorder(config), "zerolayer-promise-recorder")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves files without a wanted promise alone, so that one promise starts in seconds."""
    is_test = collection_path.suffix == ".py" and collection_path.name != "conftest.py"
    return True if is_test and _wanted(config) and collection_path not in config.stash[_FILES] else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Selects `--promise` and puts the quick kinds first; the order inside a kind stays random."""
    wanted = set(_wanted(config))
    if wanted:
        dropped = [item for item in items if not wanted & set(_promises(item))]
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if wanted & set(_promises(item))]
    items.sort(
        key=lambda item: (KINDS.index(kind_of(item.nodeid)), item.get_closest_marker("last") is not None)
    )


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Keeps one row of figures for the test's promises: `figures(tokens=64, diverged=0)`."""
    rows = request.node.stash.setdefault(_ROWS, [])

    def keep(**values: Any) -> None:
        rows.append(values)

    return keep


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Hands promises and figures over with the report, as plain values: those survive a process boundary."""
    report = yield
    report.user_properties += [("promise", name) for name in _promises(item)]
    report.user_properties += [
        ("figures", json.loads(json.dumps(row, default=str))) for row in item.stash.get(_ROWS, [])
    ]
    return report


def kind_of(nodeid: str) -> str:
    """Returns the suite a test belongs to: the folder below `tests/`, or `benchmark`."""
    parts = nodeid.split("::", maxsplit=1)[0].split("/")
    kind = parts[1] if parts[0] == "tests" and len(parts) > 1 else ""
    return kind if kind in KINDS else ("benchmark" if parts[0] == "benchmarks" else "unit")


def _wanted(config: pytest.Config) -> list[str]:
    return list(config.getoption("--promise") or [])


def _promises(item: pytest.Item) -> list[str]:
    return [str(name) for mark in item.iter_markers("promise") for name in mark.args]


class _Recorder:
    """Collects the reports of a session and turns them into the closing tables and the records."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = config.rootpath
        self._reports: dict[str, list[pytest.TestReport]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports[report.nodeid].append(report)

    def pytest_sessionfinish(self) -> None:
        """Writes one record per promise that ran."""
        by_promise: dict[str, dict[str, records.TestRecord]] = defaultdict(dict)
        commit, machine, date = records.commit(self._root), records.machine(), records.today()
        for nodeid, reports in self._reports.items():
            names = _property(reports, "promise")
            for name in dict.fromkeys(names):
                by_promise[name][nodeid] = records.TestRecord(
                    outcome=_outcome(reports),
                    seconds=round(_seconds(reports), 2),
                    figures=_property(reports[-1:], "figures"),
                    commit=commit,
                    machine=machine,
                    date=date,
                )
        for name, tests in by_promise.items():
            records.merge(self._root / "out" / "promises" / f"{name}.json", name, tests)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints counts and time of each kind, then the promises with their figures."""
        terminalreporter.section("tests by kind")
        for line in self.kind_lines():
            terminalreporter.write_line(line)
        rows = self.promise_rows()
        if rows:
            terminalreporter.section("promises")
            for line in table(("promise", "test", "outcome", "figures"), rows):
                terminalreporter.write_line(line)

    def kind_lines(self) -> list[str]:
        """Returns one line per kind that ran: counts by outcome and seconds."""
        counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        seconds: dict[str, float] = defaultdict(float)
        for nodeid, reports in self._reports.items():
            kind = kind_of(nodeid)
            counts[kind][_outcome(reports)] += 1
            seconds[kind] += _seconds(reports)
        return [
            f"{kind}: "
            + ", ".join(
                f"{counts[kind][outcome]} {outcome}" for outcome in _OUTCOMES if counts[kind][outcome]
            )
            + f" in {seconds[kind]:.1f} s"
            for kind in KINDS
            if kind in counts
        ]

    def promise_rows(self) -> list[tuple[str, str, str, str]]:
        """Returns one row per figure row of each promise test, or a bare row where it gave none."""
        rows: list[tuple[str, str, str, str]] = []
        for nodeid, reports in self._reports.items():
            figures = _property(reports[-1:], "figures") or [{}]
            for name in dict.fromkeys(_property(reports, "promise")):
                test = nodeid.rpartition("/")[2]
                rows.extend((name, test, _outcome(reports), figure_text(row)) for row in figures)
        return sorted(rows)


def _property(reports: Iterable[pytest.TestReport], key: str) -> list[Any]:
    return [value for report in reports for name, value in report.user_properties if name == key]


def _seconds(reports: Iterable[pytest.TestReport]) -> float:
    return sum(report.duration for report in reports)


def _outcome(reports: list[pytest.TestReport]) -> str:
    """Returns the one word for a test out of the reports of its set-up, call and teardown."""
    for report in reports:
        if report.failed:
            return "failed" if report.when == "call" else "error"
    if all(report.when != "teardown" for report in reports):
        return "interrupted"  # by Ctrl-C: pytest reports nothing of a phase that is broken off
    if any(hasattr(report, "wasxfail") for report in reports):
        return "xfailed" if any(report.skipped for report in reports) else "xpassed"
    return "skipped" if any(report.skipped for report in reports) else "passed"
