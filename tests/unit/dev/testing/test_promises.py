import json

import pytest

PLUGINS = ("-p", "zerolayer_dev.testing.promises", "-p", "no:randomly", "-p", "no:asyncio")
SUITE = """
import pytest

@pytest.mark.promise("quick")
def test_quick(figures):
    "Two and two are four."
    figures(sum=4, share=0.123456)
    figures(sum=5)
    assert True

@pytest.mark.promise("other")
def test_other():
    "Something else holds."

def test_plain():
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    folder = pytester.path / "tests/unit"
    folder.mkdir(parents=True)
    (folder / "test_suite.py").write_text(SUITE)
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest(*PLUGINS, *arguments)


def test_counts_by_kind_and_figures_are_printed(suite: pytest.Pytester) -> None:
    (suite.path / "tests/e2e").mkdir()
    (suite.path / "tests/e2e/test_more.py").write_text("def test_bad():\n    raise ValueError\n")

    result = run(suite)

    result.stdout.re_match_lines_random([r"unit: 3 passed in \d+\.\d s", r"e2e: 1 failed in \d+\.\d s"])
    result.stdout.re_match_lines([r"quick +test_suite.py::test_quick +passed +sum 4, share 0\.1235"])


def test_one_promise_runs_alone(suite: pytest.Pytester) -> None:
    result = run(suite, "--promise", "quick")

    result.assert_outcomes(passed=1, deselected=2)


def test_unknown_promise_lists_the_known_ones(suite: pytest.Pytester) -> None:
    result = run(suite, "--promise", "nobody-made-it")

    assert result.ret != 0
    result.stderr.fnmatch_lines(["*no promise nobody-made-it; the promises are: other, quick*"])


def test_files_without_the_promise_are_not_imported(suite: pytest.Pytester) -> None:
    (suite.path / "tests/unit/test_heavy.py").write_text("raise RuntimeError('imported')\n")

    run(suite, "--promise", "other").assert_outcomes(passed=1, deselected=2)


def test_a_mark_may_name_several_promises(suite: pytest.Pytester) -> None:
    several = 'import pytest\n\n@pytest.mark.promise("quick", "second")\ndef test_both(): pass\n'
    (suite.path / "tests/unit/test_several.py").write_text(several)

    run(suite, "--promise", "second").assert_outcomes(passed=1)


def test_record_names_commit_machine_date_and_figures(suite: pytest.Pytester) -> None:
    run(suite, "--promise", "quick")

    record = json.loads((suite.path / "out/promises/quick.json").read_text())
    (test,) = record["tests"].values()
    assert record["promise"] == "quick"
    assert test["figures"] == [{"sum": 4, "share": 0.123456}, {"sum": 5}]
    assert test["outcome"] == "passed"
    assert all(test[key] for key in ("commit", "machine", "date"))


def test_figures_of_any_type_reach_the_record_from_other_processes(suite: pytest.Pytester) -> None:
    odd = (
        "import datetime, enum, pytest\n\nclass Odd(enum.StrEnum):\n    END = 'end'\n\n"
        '@pytest.mark.promise("odd")\ndef test_odd(figures):\n'
        '    "Odd."\n    figures(end=Odd.END, day=datetime.date(2026, 1, 2))\n'
    )
    (suite.path / "tests/unit/test_odd.py").write_text(odd)

    result = run(suite, "--promise", "odd", "--numprocesses=2")

    result.assert_outcomes(passed=1)
    record = json.loads((suite.path / "out/promises/odd.json").read_text())
    (test,) = record["tests"].values()
    assert test["figures"] == [{"end": "end", "day": "2026-01-02"}]


def test_record_keeps_what_other_tests_of_the_promise_showed(suite: pytest.Pytester) -> None:
    more = suite.path / "tests/unit/test_more.py"
    more.write_text(
        "import pytest\n\n@pytest.mark.promise('quick')\ndef test_more():\n    'More.'\n".replace("'", '"')
    )
    run(suite)
    run(suite, str(more))

    record = json.loads((suite.path / "out/promises/quick.json").read_text())
    assert set(record["tests"]) == {
        "tests/unit/test_suite.py::test_quick",
        "tests/unit/test_more.py::test_more",
    }


def test_what_is_broken_off_is_not_recorded_as_passed(suite: pytest.Pytester) -> None:
    (suite.path / "tests/unit/test_x.py").write_text("def test_x():\n    raise KeyboardInterrupt\n")

    # In a process of its own, or it would break off this session as well.
    result = suite.runpytest_subprocess(*PLUGINS)

    result.stdout.fnmatch_lines(["unit: 3 passed, 1 interrupted in *"])


def test_quick_kinds_run_first_and_last_ones_last(suite: pytest.Pytester) -> None:
    for kind in ("e2e", "model", "chart"):
        (suite.path / "tests" / kind).mkdir()
        (suite.path / "tests" / kind / f"test_{kind}.py").write_text(
            "import pytest\n\n@pytest.mark.last\ndef test_end(): pass\n\ndef test_start(): pass\n"
        )

    lines = [line for line in run(suite, "-v").outlines if "PASSED" in line]

    order = [line.split("/")[1] + "::" + line.split("::")[1].split()[0] for line in lines]
    assert order[3:] == [
        f"{kind}::test_{end}" for kind in ("chart", "model", "e2e") for end in ("start", "end")
    ]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("def test_x():\n    raise KeyboardInterrupt\n", "unit: 1 interrupted in *"),
        ("import pytest\n\ndef test_x():\n    pytest.skip('no')\n", "unit: 1 skipped in *"),
        (
            "import pytest\n\n@pytest.fixture\ndef bad():\n    raise ValueError\n\ndef test_x(bad): pass\n",
            "unit: 1 error in *",
        ),
        (
            "import pytest\n\n@pytest.mark.xfail\ndef test_x():\n    raise ValueError\n",
            "unit: 1 xfailed in *",
        ),
        ("import pytest\n\n@pytest.mark.xfail(strict=False)\ndef test_x(): pass\n", "unit: 1 xpassed in *"),
    ],
)
def test_each_outcome_is_counted_by_its_name(pytester: pytest.Pytester, body: str, line: str) -> None:
    pytester.makepyfile(test_outcome=body)

    # Else the interruption of the inner run would be one of this run, too.
    pytester.runpytest(*PLUGINS, no_reraise_ctrlc=True).stdout.fnmatch_lines([line])
