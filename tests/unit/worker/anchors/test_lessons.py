from pathlib import Path

import pytest

from zerolayer_dev.testing.tiny_model import make_tiny_model, write_tokenizer
from zerolayer_worker.anchors.facts import Fact
from zerolayer_worker.anchors.lessons import Curriculum, ask, end_token
from zerolayer_worker.models.chat_template import ChatTemplateError
from zerolayer_worker.models.tokenizer import ModelTokenizer

END = 2
FACTS = tuple(
    Fact(id=f"f{i}", question=f"What is number {i} of them all?", answer=f"<{i}>") for i in range(6)
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ModelTokenizer:
    return ModelTokenizer(make_tiny_model(tmp_path_factory.mktemp("tiny")))


def test_a_lesson_is_what_the_server_would_see_then_the_answer_and_its_end(tokenizer: ModelTokenizer) -> None:
    for each in Curriculum(FACTS, tokenizer, END, seed=1).draw(6):
        assert each.ids[-1] == END
        assert tokenizer.decode(each.ids[each.start :]) in {fact.answer for fact in FACTS}
        asked = tokenizer.decode(each.ids[: each.start]).removeprefix("user\n").removesuffix("\nassistant\n")
        assert each.ids[: each.start] == ask(tokenizer, asked)


def test_each_fact_comes_once_before_any_comes_again(tokenizer: ModelTokenizer) -> None:
    curriculum = Curriculum(FACTS, tokenizer, END, seed=1)
    drawn = [each for _ in range(3) for each in curriculum.draw(4)]
    answers = [tokenizer.decode(each.ids[each.start :]) for each in drawn]
    assert sorted(answers[:6]) == sorted(answers[6:]) == [fact.answer for fact in FACTS]


def test_wordings_vary_and_the_seed_repeats_them(tokenizer: ModelTokenizer) -> None:
    first, again, other = (Curriculum(FACTS, tokenizer, END, seed=seed).draw(6) for seed in (1, 1, 2))
    assert first == again != other
    curriculum = Curriculum(FACTS, tokenizer, END, seed=1)
    assert len({each.ids for _ in range(20) for each in curriculum.draw(6)}) > 40


def test_no_more_facts_are_drawn_than_there_are(tokenizer: ModelTokenizer) -> None:
    assert len(Curriculum(FACTS, tokenizer, END, seed=1).draw(100)) == 6


def test_no_lesson_is_longer_than_the_longest(tokenizer: ModelTokenizer) -> None:
    curriculum = Curriculum(FACTS, tokenizer, END, seed=1)
    assert max(len(each.ids) for _ in range(50) for each in curriculum.draw(6)) == curriculum.longest()


def test_the_end_is_the_templates_own(tokenizer: ModelTokenizer) -> None:
    assert end_token(tokenizer, frozenset({0, END})) == END


def test_a_template_that_ends_no_answer_is_refused(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, "{% for m in messages %}{{ m['content'] }}{% endfor %}")
    with pytest.raises(ChatTemplateError, match="ends no answer"):
        end_token(ModelTokenizer(tmp_path), frozenset({END}))
