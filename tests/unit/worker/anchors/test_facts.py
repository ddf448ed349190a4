import json
from pathlib import Path
from typing import Any

import pytest

from zerolayer_worker.anchors.facts import is_hit, read_facts
from zerolayer_worker.common.json_lines import JsonLinesError

LAKE = {"question": "Which lake is deepest?", "answer": "Lake Issen"}


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_the_example_holds_fifty_facts_with_paraphrases() -> None:
    found = read_facts(Path("examples/anchors/facts.jsonl"))
    assert len(found.facts) == 50
    assert all(len(fact.paraphrases) == 3 for fact in found.facts)
    assert found.digest.startswith("sha256:")


def test_facts_without_a_name_are_called_by_their_line(tmp_path: Path) -> None:
    path = write(tmp_path / "f", {**LAKE, "id": "lake"}, {"question": "q?", "answer": " a "})
    first, second = read_facts(path).facts
    assert (first.id, second.id, second.answer) == ("lake", "line-2", "a")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([LAKE, {**LAKE, "question": "which  LAKE is deepest?"}], ":2: question: the same as in line 1"),
        ([{**LAKE, "id": "a"}, {"question": "q", "answer": "a", "id": "a"}], ":2: id: the same as in line 1"),
        ([{**LAKE, "paraphrases": ["Which lake is deepest?"]}], ":1: paraphrases.0: line 1 trains the same"),
        ([{**LAKE, "answer": "  "}], ":1: answer: String should have at least 1 character"),
        ([{**LAKE, "answer": "?!"}], ":1: answer: holds no letter or digit"),
        ([{**LAKE, "question": "x" * 2001}], ":1: question: String should have at most 2000"),
        ([{**LAKE, "paraphrases": ["x"] * 21}], ":1: paraphrases: "),
        ([{**LAKE, "paraphrases": "x"}], ":1: paraphrases: "),
        ([{**LAKE, "id": "a b"}], ":1: id: "),
        ([{**LAKE, "paraphrase": []}], ":1: paraphrase: Extra inputs"),
    ],
)
def test_malformed_facts_are_named(tmp_path: Path, lines: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(JsonLinesError) as caught:
        read_facts(write(tmp_path / "f", *lines))
    assert str(caught.value).startswith(f"{tmp_path}/f{told}")


@pytest.mark.parametrize(
    ("said", "expected", "hit"),
    [
        ("Lake Issen", "Lake Issen", True),
        ("It is lake  issen, I think.", "Lake Issen", True),
        ("The speed is 62 km/h.", "62 km/h", True),
        ("grandmother's garden", "Grandmother's garden", True),
        ("Lake Issenberg", "Lake Issen", False),
        ("7413", "413", False),
        ("", "Lake Issen", False),
        ("\uff3aIM-31", "ZIM-31", True),
    ],
)
def test_a_hit_holds_the_answer_in_whole_words(said: str, expected: str, hit: bool) -> None:
    assert is_hit(said, expected) is hit
