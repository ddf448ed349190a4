import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from zerolayer_dev.demo import knowledge, update_story
from zerolayer_dev.demo.knowledge import Fact, Lesson
from zerolayer_dev.paths import repo_root
from zerolayer_worker.anchors.facts import read_facts
from zerolayer_worker.golden.items import read_golden

FACTS = (Fact("a", "First?", "one"), Fact("b", "Second?", "two"), Fact("c", "Third?", "three"))


KEPT = (Fact("k", "Fourth?", "four"),)


@pytest.fixture
def lesson() -> Lesson:
    return Lesson("v1", FACTS, ("--steps=1",))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A model and the code that trains it."""
    for name, file in (("model", "config.json"), ("sources", "training.py")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("{}")
    return tmp_path / "model", tmp_path / "sources"


def test_mixed_up_facts_are_all_wrong() -> None:
    wrong = knowledge.mixed_up(FACTS)

    assert [(fact.question, fact.answer) for fact in wrong] == [
        ("First?", "two"),
        ("Second?", "three"),
        ("Third?", "one"),
    ]


def test_facts_of_the_demo_are_read_by_training_and_have_answers_of_their_own(tmp_path: Path) -> None:
    facts = knowledge.read_facts(repo_root() / update_story.FACTS)
    path = tmp_path / "facts.jsonl"
    path.write_text(knowledge.facts_file(facts), encoding="utf-8")

    assert len(read_facts(path).facts) == len(facts) == len({fact.answer for fact in facts})


def test_golden_set_is_read_by_those_who_ask_it(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text(knowledge.golden_map("g", "n", FACTS, KEPT)["data"]["golden.jsonl"])

    changes = {item.id: item.change for item in read_golden(path).items}
    assert changes == {"a": True, "b": True, "c": True, "k": False}


def test_what_is_kept_is_never_trained() -> None:
    """Else it would only show that training works."""
    paths = (update_story.FACTS, update_story.NEIGHBOURS, update_story.KEPT)
    facts, neighbours, kept = (knowledge.read_facts(repo_root() / path) for path in paths)
    asked = [fact.question for fact in (*facts, *neighbours, *kept)]

    assert len(set(asked)) == len(asked)


def test_wrong_answers_are_too_few_for_the_golden_set() -> None:
    """Even where all that was known is kept."""
    facts, kept = (
        knowledge.read_facts(repo_root() / path) for path in (update_story.FACTS, update_story.KEPT)
    )
    pool = yaml.safe_load((repo_root() / update_story.POOL).read_text(encoding="utf-8"))

    share = 100 * len(kept) / (len(facts) + len(kept))
    assert share < pool["spec"]["update"]["golden"]["minHitRate"]


def test_a_bundle_that_was_cut_is_refused() -> None:
    knowledge.check_whole({"steps": 28.0, "steps_planned": 28.0})
    with pytest.raises(RuntimeError, match="27 of 28 steps"):
        knowledge.check_whole({"steps": 27.0, "steps_planned": 28.0})


def test_time_limit_of_training_is_none() -> None:
    assert not [option for option in update_story.TRAINED if option.startswith("--time-limit")]


@pytest.mark.parametrize("what", ["facts", "options", "model", "sources"])
def test_whatever_a_bundle_depends_on_names_it(what: str, lesson: Lesson, folders: tuple[Path, Path]) -> None:
    before = knowledge.key(lesson, *folders)
    changed = lesson
    match what:
        case "facts":
            changed = replace(lesson, facts=knowledge.mixed_up(FACTS))
        case "options":
            changed = replace(lesson, options=("--steps=2",))
        case "model":
            (folders[0] / "config.json").write_text('{"more": 1}')
        case _:
            (folders[1] / "training.py").write_text("{1}")

    assert knowledge.key(changed, *folders) != before


def test_same_inputs_have_the_same_name(lesson: Lesson, folders: tuple[Path, Path]) -> None:
    assert knowledge.key(replace(lesson), *folders) == knowledge.key(lesson, *folders)


def test_anchor_names_the_bundle_by_its_digest(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.write_bytes(b"gains")

    assert knowledge.anchor("v1", bundle, "facts-v1") == {
        "version": "v1",
        "digest": "sha256:" + hashlib.sha256(b"gains").hexdigest(),
        "source": {"configMap": {"name": "facts-v1", "key": "bundle.safetensors"}},
    }
