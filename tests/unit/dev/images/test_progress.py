import sys
from pathlib import Path

import pytest

from zerolayer_dev.images.progress import BuildError, run, step_of


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("STEP 3/7: RUN apt-get update", "3/7: RUN apt-get update"),
        ("[2/5] STEP 1/4: FROM debian AS torch", "1/4: FROM debian AS torch"),
        ("#9 [torch 2/4] RUN pip install", "[torch 2/4] RUN pip install"),
        ("#9 0.123 Collecting torch", None),
        ("Collecting torch", None),
    ],
)
def test_the_steps_of_every_builder_are_recognised(line: str, step: str | None) -> None:
    assert step_of(line) == step


def test_steps_are_shown_with_seconds_and_everything_is_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        "worker", [sys.executable, "-c", "print('STEP 1/1: RUN it'); print('noise')"], tmp_path / "logs/x.log"
    )

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.split() == ["worker", "0", "s", "1/1:", "RUN", "it"]
    assert (tmp_path / "logs/x.log").read_text().splitlines() == ["STEP 1/1: RUN it", "noise"]


def test_a_failure_names_the_log_and_shows_the_end_of_the_output(tmp_path: Path) -> None:
    program = "import sys; [print('line', n) for n in range(100)]; sys.exit('no space left')"

    with pytest.raises(BuildError, match="no space left") as caught:
        run("worker", [sys.executable, "-c", program], tmp_path / "x.log")

    assert str(tmp_path / "x.log") in str(caught.value)
    assert "line 99\n" in str(caught.value)
    assert "line 9\n" not in str(caught.value)
