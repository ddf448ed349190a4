import pytest

CONFTEST = """
import time
from pathlib import Path
import pytest
from zerolayer_dev.testing.preparation import prepare

BUILT = []

def build():
    print("compiling everything")
    Path("under-construction").mkdir()
    time.sleep(1.5)
    Path("under-construction").rmdir()
    BUILT.append(1)

def pytest_collection_finish(session):
    prepare(session, "machine", build)

@pytest.fixture
def machine():
    return BUILT
"""
TESTS = """
def test_with_machine(machine):
    assert machine == [1]

def test_without():
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # Else it would wait for whoever builds on this machine.
    monkeypatch.setenv("ZEROLAYER_CACHE", str(pytester.path / "cache"))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # The build takes longer than a test may.
    return suite.runpytest("-p", "no:randomly", "-p", "no:asyncio", "--timeout=1", *arguments)


def test_no_tests_time_limit_includes_the_build_and_its_progress_is_shown(suite: pytest.Pytester) -> None:
    result = run(suite)

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*compiling everything"])


@pytest.mark.parametrize("arguments", [("-k", "without"), ("--collect-only",)])
def test_nothing_is_built_for_tests_that_do_not_need_it(
    suite: pytest.Pytester, arguments: tuple[str, ...]
) -> None:
    result = run(suite, *arguments)

    assert result.ret == 0
    result.stdout.no_fnmatch_line("*compiling everything")


def test_processes_of_one_run_build_one_after_the_other(suite: pytest.Pytester) -> None:
    result = run(suite, "--numprocesses=2")

    assert result.ret == 0
    result.assert_outcomes(passed=2)
