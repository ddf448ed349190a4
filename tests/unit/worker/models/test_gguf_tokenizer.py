from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zerolayer_worker.models.gguf_tokenizer import TokenizerError, build_tokenizer, tokenizer_config

# The 256 characters that stand for bytes in a byte-level vocabulary.
_BYTES = sorted(
    {chr(code) for code in (*range(33, 127), *range(161, 173), *range(174, 256))}
    | {chr(256 + index) for index in range(68)}
)


def meta(**changes: Any) -> dict[str, Any]:
    tokens = ["<s>", "</s>", "<tool>", *_BYTES, "ab", "ĠĠ", "Ġ1", "12", "ĠĠĠ"]
    base: dict[str, Any] = {
        "llama.context_length": 64,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, 4] + [1] * (len(tokens) - 3),
        "tokenizer.ggml.merges": ["a b", "Ġ Ġ", "Ġ 1", "1 2", "ĠĠ Ġ"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 1,
    }
    return base | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}


@pytest.mark.parametrize(
    ("pre", "text", "pieces"),
    [
        # Every digit alone, so a space before it belongs to the spaces and not to the digit.
        ("smollm", "ab  12", ["ab", "ĠĠ", "1", "2"]),
        ("smollm", "½", ["Â", "½"]),
        ("gpt-2", "ab  12", ["ab", "Ġ", "Ġ1", "2"]),
        ("qwen2", "ab  12", ["ab", "Ġ", "Ġ", "1", "2"]),
        ("qwen2", "a\u0308", ["Ã", "¤"]),  # composed: one letter, two bytes
        ("deepseek-r1-qwen", "AB'S", ["A", "B", "'", "S"]),
        ("tekken", "ab  12", ["ab", "Ġ", "Ġ", "1", "2"]),
        ("llama-bpe", "ab  12", ["ab", "Ġ", "Ġ", "12"]),
        ("llama-bpe", "ab   12", ["ab", "ĠĠ", "Ġ", "12"]),
    ],
)
def test_words_are_split_the_way_the_file_says(pre: str, text: str, pieces: list[str]) -> None:
    assert build_tokenizer(meta(pre=pre)).encode(text).tokens == pieces


@given(text=st.text())
def test_any_text_comes_back_unchanged(text: str) -> None:
    tokenizer = build_tokenizer(meta())

    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_control_tokens_are_special_and_user_defined_ones_are_text() -> None:
    tokenizer = build_tokenizer(meta())

    ids = tokenizer.encode("<s>ab<tool></s>").ids

    assert tokenizer.decode(ids, skip_special_tokens=True) == "ab<tool>"
    assert (ids[0], ids[-2], ids[-1]) == (0, 2, 1)


@pytest.mark.parametrize(("add_bos", "first"), [(True, "<s>"), (False, "ab")])
def test_the_start_token_is_added_where_the_file_asks_for_it(*, add_bos: bool, first: str) -> None:
    tokenizer = build_tokenizer(meta(add_bos_token=add_bos))

    assert tokenizer.encode("ab").tokens[0] == first
    assert tokenizer.encode("ab", add_special_tokens=False).tokens == ["ab"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "t5"}, "kind 't5'"),
        ({"model": "llama"}, r"lacks the list tokenizer\.ggml\.scores"),
        ({"add_eos_token": True}, r"tokenizer\.ggml\.add_eos_token"),
        ({"pre": "deepseek-llm"}, "'deepseek-llm' splits words"),
        ({"merges": None}, r"lacks the list tokenizer\.ggml\.merges"),
        ({"tokens": 5}, r"lacks the list tokenizer\.ggml\.tokens"),
    ],
)
def test_other_vocabularies_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        build_tokenizer(meta(**changes))


def test_config_names_the_special_tokens_and_leaves_out_what_the_file_lacks() -> None:
    config = tokenizer_config(meta() | {"tokenizer.chat_template": "{{ messages }}"}, 64)

    assert config["bos_token"] == "<s>"
    assert config["eos_token"] == config["unk_token"] == "</s>"
    assert "pad_token" not in config
    assert config["chat_template"] == "{{ messages }}"
    assert config["model_max_length"] == 64


# SentencePiece: every byte, letters, and pieces with scores as its trainer gives them, the earliest the best.
_PIECES = ["\u2581", "a", "b", "c", "ab", "\u2581a", "bc", "abc", "\u2581ab", "\u2581\u2581", "aa", "\u00e4"]
_SP_TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *_PIECES]
_SCORES = [0.0] * 259 + [-100.0] * 4 + [-float(rank) for rank in range(7)] + [-100.0]


def sentencepiece_meta(**changes: Any) -> dict[str, Any]:
    scores = dict(zip(_SP_TOKENS, _SCORES, strict=True))
    base: dict[str, Any] = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": _SP_TOKENS,
        "tokenizer.ggml.scores": [scores[token] for token in _SP_TOKENS],
        "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * len(_PIECES),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }
    return base | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}


def by_definition(text: str) -> list[str]:
    """SentencePiece's BPE as it is defined: join the best-scoring neighbours until none can be joined."""
    scores = dict(zip(_SP_TOKENS, _SCORES, strict=True))
    pieces = list("\u2581" + text.replace(" ", "\u2581"))
    while True:
        joined = [
            (-scores[left + right], at)
            for at, (left, right) in enumerate(pairwise(pieces))
            if left + right in _PIECES
        ]
        if not joined:
            break
        at = min(joined)[1]
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
    return [
        token
        for piece in pieces
        for token in ([piece] if piece in _PIECES else [f"<0x{byte:02X}>" for byte in piece.encode()])
    ]


@given(text=st.text(alphabet="abc \u00e4\u20ac\n", min_size=1))
@example("abcab  aaa")
def test_sentencepiece_joins_what_scores_best(text: str) -> None:
    tokenizer = build_tokenizer(sentencepiece_meta())

    found = tokenizer.encode(text)

    assert found.tokens == ["<s>", *by_definition(text)]
    assert tokenizer.decode(found.ids) == text


def test_sentencepiece_without_a_space_before_the_text() -> None:
    tokenizer = build_tokenizer(sentencepiece_meta(add_space_prefix=False, add_bos_token=False))

    assert tokenizer.encode("ab a").tokens == ["ab", "\u2581a"]
    assert tokenizer.decode(tokenizer.encode(" ab a").ids) == " ab a"
