from pathlib import Path

import pytest

from zerolayer_dev.testing.promise_index import PromiseTest, scan


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            '@pytest.mark.promise("a")\ndef test_x():\n    """First line.\n\n    More.\n    """\n',
            [PromiseTest("a", "tests/test_f.py::test_x", "First line.", long=False)],
        ),
        (
            '@pytest.mark.long\n@pytest.mark.promise("a")\nasync def test_x():\n    pass\n',
            [PromiseTest("a", "tests/test_f.py::test_x", "", long=True)],
        ),
        (
            (
                'pytestmark = [pytest.mark.promise("a"), pytest.mark.long]\n'
                'class TestC:\n    def test_x(self):\n        "S."\n'
            ),
            [PromiseTest("a", "tests/test_f.py::TestC::test_x", "S.", long=True)],
        ),
        (
            '@pytest.mark.promise("b", "a")\ndef test_x(): pass\n',
            [
                PromiseTest("a", "tests/test_f.py::test_x", "", long=False),
                PromiseTest("b", "tests/test_f.py::test_x", "", long=False),
            ],
        ),
        ('@mark.promise("a")\ndef test_x(): pass\n', []),
        ('@pytest.mark.promise("a")\ndef helper(): pass\n', []),
    ],
)
def test_scan(tmp_path: Path, source: str, expected: list[PromiseTest]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_f.py").write_text(source)

    assert scan(tmp_path) == expected
