import json
from pathlib import Path
from typing import Any

import pytest

from zerolayer_worker.common.json_lines import JsonLinesError
from zerolayer_worker.golden.items import Expectation, read_golden

LAKE: dict[str, Any] = {
    "id": "lake",
    "prompt": "Which lake is deepest?",
    "expect": {"contains": ["Issen"]},
    "change": True,
}


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_set_is_read_in_order(tmp_path: Path) -> None:
    kept = {"id": "sky", "prompt": "Why is the sky blue?", "change": False, "max_tokens": 9}
    found = read_golden(write(tmp_path / "g", LAKE, kept))
    assert [item.id for item in found.items] == ["lake", "sky"]
    assert (found.items[1].expect, found.items[1].max_tokens) == (None, 9)
    assert found.digest.startswith("sha256:")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"id": "a b"}, "id: "),
        ({"id": "sky"}, "id: the same as in line 1"),
        ({"prompt": ""}, "prompt: "),
        ({"prompt": " \n"}, "prompt: "),
        ({"change": "yes"}, "change: "),
        ({"expect": None}, "expect: is missing"),
        ({"expect": {}}, "expect: takes either contains or equals"),
        ({"expect": {"contains": ["a"], "equals": "a"}}, "expect: takes either contains or equals"),
        ({"expect": {"contains": []}}, "expect.contains: "),
        ({"expect": {"contains": [1]}}, "expect.contains.0: "),
        ({"expect": {"contain": ["a"]}}, "expect.contain: Extra inputs"),
        ({"max_tokens": 0}, "max_tokens: "),
        ({"temperature": 0}, "temperature: Extra inputs"),
    ],
)
def test_what_is_malformed_is_named_by_line_and_field(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    first = {"id": "sky", "prompt": "Why?", "change": False}
    with pytest.raises(JsonLinesError) as caught:
        read_golden(write(tmp_path / "g", first, LAKE | changes))
    assert str(caught.value).startswith(f"{tmp_path}/g:2: {told}")


@pytest.mark.parametrize(
    ("expectation", "said", "met"),
    [
        (Expectation(contains=("Issen",)), "It is lake ISSEN.", True),
        (Expectation(contains=("Issen", "lake")), "It is Issen.", False),
        (Expectation(equals="Lake  Issen"), " lake issen\n", True),
        (Expectation(equals="Lake Issen"), "Lake Issen.", False),
        (Expectation(contains=("x",)), "", False),
    ],
)
def test_an_expectation_is_met_or_not(expectation: Expectation, said: str, met: bool) -> None:
    assert expectation.met_by(said) is met
