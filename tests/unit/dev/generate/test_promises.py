from pathlib import Path

import pytest

from zerolayer_dev.generate import promises
from zerolayer_dev.testing import records

QUICK = '@pytest.mark.promise("quick")\ndef test_quick():\n    """Two and two are four."""\n'
LONG = '@pytest.mark.long\n@pytest.mark.promise("slow")\ndef test_slow():\n    """It takes a while."""\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text(QUICK + LONG)
    return tmp_path


def run_of(test: str, **figures: object) -> dict[str, records.TestRecord]:
    return {
        test: records.TestRecord(
            "passed", 61.4, [dict(figures)], commit="c0ffee", machine="m", date="2026-01-02"
        )
    }


def test_page_names_sentence_and_test(root: Path) -> None:
    page = promises.render(root)[promises.PAGE]

    assert "| **quick** | Two and two are four. | `tests/test_a.py::test_quick` |" in page
    assert "`tests/test_a.py::test_slow` (long)" in page
    assert "| `tests/test_a.py::test_slow` | no run recorded |" in page


def test_recorded_figures_of_long_promises_survive_the_loss_of_the_run(root: Path) -> None:
    out = root / "out/promises"
    records.merge(out / "slow.json", "slow", run_of("tests/test_a.py::test_slow[x]", tokens=64))
    records.merge(out / "quick.json", "quick", run_of("tests/test_a.py::test_quick", sum=4))
    promises.record(root)
    (out / "slow.json").unlink()

    page = promises.render(root)[promises.PAGE]

    assert (
        "| `tests/test_a.py::test_slow[x]` | passed in 61 s | tokens 64 | c0ffee | 2026-01-02 | m |" in page
    )
    assert not (root / promises.FIGURES / "quick.json").exists()
