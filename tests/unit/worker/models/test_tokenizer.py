import threading
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zerolayer_dev.testing.tiny_model import write_tokenizer
from zerolayer_worker.common.errors import TextTooLongError
from zerolayer_worker.models.folder import ModelFolderError
from zerolayer_worker.models.tokenizer import ModelTokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ModelTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return ModelTokenizer(folder)


@given(text=st.text())
def test_text_survives_token_by_token(tokenizer: ModelTokenizer, text: str) -> None:
    # What names a special token is one, and shown to nobody.
    assume(not any(item.content in text for item in tokenizer._tokenizer.get_added_tokens_decoder().values()))
    detokenizer = tokenizer.detokenizer()
    pieces = [detokenizer.push(token_id) for token_id in tokenizer.encode_text(text)]
    # One at the end looks like half a character, whose other half never came.
    assert "".join(pieces) == text.rstrip("\N{REPLACEMENT CHARACTER}")
    assert all("\N{REPLACEMENT CHARACTER}" not in piece for piece in pieces) or "\ufffd" in text


@given(text=st.text(min_size=1))
def test_a_text_that_fits_is_never_refused_for_its_length(tokenizer: ModelTokenizer, text: str) -> None:
    tokens = tokenizer.encode_text(text)
    assert len(text) <= tokenizer._chars_of(len(tokens))


def test_a_text_that_cannot_fit_is_refused_before_it_is_tokenised(
    tokenizer: ModelTokenizer, tmp_path: Path
) -> None:
    write_tokenizer(tmp_path)
    bounded = ModelTokenizer(tmp_path, max_tokens=10)
    most = tokenizer._chars_of(10)

    assert bounded.encode_text("a" * most) == tokenizer.encode_text("a" * most)
    with pytest.raises(TextTooLongError, match=f"{most + 1} characters"):
        bounded.encode_text("a" * (most + 1))


def test_a_long_prompt_does_not_hold_up_other_threads(tokenizer: ModelTokenizer) -> None:
    """The event loop is one of them: probes and everybody's streams."""
    working = threading.Thread(
        target=tokenizer.encode_text, args=("seven words of a very long prompt " * 30_000,)
    )
    working.start()
    turns = 0
    while working.is_alive():
        # Did the tokenizer hold the interpreter, this thread had one turn before it and one after.
        working.join(timeout=0.002)
        turns += 1
    assert turns > 5


@given(ids=st.lists(st.integers(0, 400), max_size=30))
def test_any_tokens_can_be_decoded(tokenizer: ModelTokenizer, ids: list[int]) -> None:
    """A model may choose ids that are no text, or none of the tokenizer's."""
    detokenizer = tokenizer.detokenizer()
    assert all(isinstance(detokenizer.push(token_id), str) for token_id in ids)


def test_a_character_appears_once_it_is_whole(tokenizer: ModelTokenizer) -> None:
    detokenizer = tokenizer.detokenizer()
    assert [detokenizer.push(token_id) for token_id in tokenizer.encode_text("a🦊b")] == [
        "a", "", "", "", "🦊", "b",
    ]  # fmt: skip


def test_special_tokens_are_no_text(tokenizer: ModelTokenizer) -> None:
    detokenizer = tokenizer.detokenizer()
    assert detokenizer.push(2) == ""
    assert tokenizer.token_text(2) == "<|im_end|>"


def test_encodes_a_conversation(tokenizer: ModelTokenizer) -> None:
    ids = tokenizer.encode_chat([{"role": "user", "content": "Hi"}])
    assert ids == tokenizer.encode_text("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert ids[0] == 1


def test_says_what_it_can_not_render(tokenizer: ModelTokenizer, tmp_path: Path) -> None:
    assert not tokenizer.supports_tools
    with pytest.raises(ValueError, match="does not support tools"):
        tokenizer.encode_chat([{"role": "user", "content": "Hi"}], [{"name": "clock"}])
    write_tokenizer(tmp_path, chat_template=None)
    with pytest.raises(ValueError, match="no chat template"):
        ModelTokenizer(tmp_path).encode_chat([{"role": "user", "content": "Hi"}])


def test_names_a_missing_or_broken_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match=r"tokenizer\.json: file is missing"):
        ModelTokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelFolderError, match=r"tokenizer\.json: not a readable tokenizer"):
        ModelTokenizer(tmp_path)
