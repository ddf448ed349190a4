import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.tiny_model import write_tokenizer
from zerolayer_worker.engine.api import FinishReason, TextDelta, TokenLogprob
from zerolayer_worker.engine.output import Ending, OutputProcessor, StopMatcher
from zerolayer_worker.models.tokenizer import ModelTokenizer

EOS = 2


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ModelTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return ModelTokenizer(folder)


def run(
    tokenizer: ModelTokenizer, ids: tuple[int, ...], stops: tuple[str, ...] = (), max_tokens: int = 100
) -> tuple[list[TextDelta], Ending | None, OutputProcessor]:
    output = OutputProcessor(
        tokenizer.detokenizer(), max_tokens=max_tokens, eos_ids=frozenset({EOS}), stops=stops
    )
    deltas: list[TextDelta] = []
    for token_id in ids:
        delta, ending = output.push(token_id, TokenLogprob(token_id, "", -1.0))
        deltas += [delta] if delta else []
        if ending:
            return deltas, ending, output
    return deltas, None, output


def text(deltas: list[TextDelta]) -> str:
    return "".join(delta.text for delta in deltas)


@pytest.mark.parametrize(
    ("answer", "stops", "shown", "found"),
    [
        ("one two", (), "one two", None),
        ("one STOP two", ("STOP",), "one ", "STOP"),
        ("STOP", ("STOP",), "", "STOP"),
        ("one STO two", ("STOP",), "one STO two", None),
        ("aab", ("ab",), "a", "ab"),
        ("aaab", ("aab",), "a", "aab"),
        ("x\n\ny", ("\n\n",), "x", "\n\n"),
        ("🦊 und 🐺!", ("🐺",), "🦊 und ", "🐺"),
        ("abc", ("bc", "abc"), "", "abc"),
        ("abc", ("b", "bc"), "a", "b"),
        ("one", ("",), "one", None),
    ],
)
def test_ends_before_a_stop_sequence(
    tokenizer: ModelTokenizer, answer: str, stops: tuple[str, ...], shown: str, found: str | None
) -> None:
    """Every token is one byte, so each of these spans tokens."""
    deltas, ending, _ = run(tokenizer, (*tokenizer.encode_text(answer), EOS), stops)
    assert text(deltas) == shown
    assert ending is not None
    assert ending.stop_sequence == found
    assert ending.reason == (FinishReason.STOP_SEQUENCE if found else FinishReason.END_OF_SEQUENCE)


@given(answer=st.text("abc", max_size=30), stops=st.lists(st.text("abc", min_size=1, max_size=4), max_size=3))
def test_pieces_and_whole_agree(answer: str, stops: list[str]) -> None:
    """Shown is the text up to where the first stop sequence to be complete begins; nothing is taken back."""
    matcher, shown, found = StopMatcher(stops), "", None
    for character in answer:
        piece, found = matcher.push(character)
        shown += piece
        if found:
            break
    else:
        shown += matcher.flush()
    ends = [answer.find(stop) + len(stop) for stop in stops if stop in answer]
    if not ends:
        assert (shown, found) == (answer, None)
    else:
        begins = [min(ends) - len(stop) for stop in stops if answer[: min(ends)].endswith(stop)]
        assert shown == answer[: min(begins)]
        assert found == answer[min(begins) : min(ends)]


def test_holds_back_only_what_may_still_become_a_stop_sequence() -> None:
    matcher = StopMatcher(("STOP",))
    assert [matcher.push(piece)[0] for piece in ("a", "S", "T", "x", "ST")] == ["a", "", "", "STx", ""]
    assert matcher.flush() == "ST"


def test_ends_at_the_token_limit_with_what_was_held(tokenizer: ModelTokenizer) -> None:
    deltas, ending, output = run(tokenizer, tokenizer.encode_text("abST"), ("STOP",), max_tokens=4)
    assert text(deltas) == "abST"
    assert ending == Ending(FinishReason.LENGTH)
    assert output.tokens == 4


def test_the_end_token_counts_and_is_no_text(tokenizer: ModelTokenizer) -> None:
    deltas, ending, output = run(tokenizer, (*tokenizer.encode_text("ab"), EOS))
    assert text(deltas) == "ab"
    assert ending == Ending(FinishReason.END_OF_SEQUENCE)
    assert output.tokens == 3


def test_half_a_character_is_never_shown(tokenizer: ModelTokenizer) -> None:
    ids = tokenizer.encode_text("a🦊")
    assert text(run(tokenizer, (*ids[:-1], EOS))[0]) == "a"
    assert text(run(tokenizer, ids[:-1], max_tokens=len(ids) - 1)[0]) == "a"


def test_tokens_travel_with_the_text_they_led_to(tokenizer: ModelTokenizer) -> None:
    ids = tokenizer.encode_text("a🦊b")
    deltas, _, _ = run(tokenizer, ids)
    assert [delta.token_ids for delta in deltas] == [ids[:1], ids[1:5], ids[5:]]
    assert [len(delta.logprobs) for delta in deltas] == [1, 4, 1]
