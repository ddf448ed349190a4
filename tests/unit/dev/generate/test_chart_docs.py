import re

import pytest

from zerolayer_dev.generate import chart_docs
from zerolayer_dev.generate.chart_docs import Value, documented
from zerolayer_dev.paths import repo_root

VALUES = """\
group:
  # The first,
  # in two lines.
  first: 1

  # A list.
  second: [a, b]
# Documented as a whole.
whole:
  inner:
    deep: x
"""


def test_comments_document_the_key_below_them() -> None:
    assert documented(VALUES) == [
        Value("group.first", 1, "The first, in two lines."),
        Value("group.second", ["a", "b"], "A list."),
        Value("whole", {"inner": {"deep": "x"}}, "Documented as a whole."),
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: 1\n", "a (line 1)"),
        ("a:\n  # x\n  b: 1\n  c: {}\n", "a.c (line 4)"),
        ("# x\n\na: 1\n", "a (line 3)"),
    ],
)
def test_value_without_comment_is_an_error(text: str, where: str) -> None:
    with pytest.raises(ValueError, match=re.escape(where)):
        documented(text)


def test_file_that_is_no_mapping_is_an_error() -> None:
    with pytest.raises(TypeError):
        documented("[1, 2]")


def test_page_has_a_row_for_every_value() -> None:
    (page,) = chart_docs.render(repo_root()).values()
    values = documented((repo_root() / "charts/zerolayer/values.yaml").read_text(encoding="utf-8"))
    assert page.count("\n| `") == len(values) > 20
