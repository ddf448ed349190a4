"""The tokenizer inside a GGUF file, as the `tokenizers` library's own object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE

if TYPE_CHECKING:
    from collections.abc import Mapping

_CASELESS_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3_WORDS = _CASELESS_ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + _REST
_QWEN2_WORDS = _CASELESS_ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + _REST
_TEKKEN_WORDS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _REST
)
_WORDS = {
    "llama-bpe": _LLAMA3_WORDS,
    "qwen2": _QWEN2_WORDS,
    "deepseek-r1-qwen": _QWEN2_WORDS,
    "tekken": _TEKKEN_WORDS,
}
_WHOLE_WORDS_FIRST = {"llama-bpe", "tekken"}
"""Vocabularies whose words are taken whole where they are tokens, whatever the merges would make of them."""

_COMPOSED = {"qwen2", "deepseek-r1-qwen"}
"""Vocabularies of text in Unicode's composed form."""

# Token types of the GGUF format (`gguf.TokenType`); the others are ordinary entries of the vocabulary.
_NORMAL = 1
_CONTROL = 3
_USER_DEFINED = 4

_SPACE = "\u2581"
"""How SentencePiece writes a space."""


class TokenizerError(ValueError):
    """The vocabulary is of a kind that cannot be rebuilt; the message names it."""


def build_tokenizer(meta: Mapping[str, Any]) -> Tokenizer:
    """Rebuild the tokenizer that the file describes: byte-level BPE, or SentencePiece's BPE.

    Args:
        meta: The fields of the GGUF file, by name.

    Raises:
        TokenizerError: The vocabulary is of another kind, or splits words in an unknown way.
    """
    kind = meta.get("tokenizer.ggml.model")
    builders = {"gpt2": _byte_level, "llama": _sentencepiece}
    if kind not in builders:
        raise TokenizerError(f"vocabulary of kind {kind!r} cannot be converted; known are {sorted(builders)}")
    if meta.get("tokenizer.ggml.add_eos_token", False):
        raise TokenizerError("tokenizer.ggml.add_eos_token, an end after every text, cannot be converted")
    tokens = _list(meta, "tokens")
    tokenizer = builders[kind](meta, tokens)
    _add_special_tokens(tokenizer, tokens, meta.get("tokenizer.ggml.token_type", []))
    # SentencePiece vocabularies begin texts with their start token unless they say otherwise.
    if meta.get("tokenizer.ggml.add_bos_token", kind == "llama"):
        bos = int(meta["tokenizer.ggml.bos_token_id"])
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{tokens[bos]} $A",
            pair=f"{tokens[bos]} $A {tokens[bos]} $B",
            special_tokens=[(tokens[bos], bos)],
        )
    return tokenizer


def _byte_level(meta: Mapping[str, Any], tokens: list[str]) -> Tokenizer:
    splitter = str(meta.get("tokenizer.ggml.pre", "default"))
    tokenizer = Tokenizer(
        BPE(
            vocab={token: index for index, token in enumerate(tokens)},
            merges=[_pair(merge) for merge in _list(meta, "merges")],
            ignore_merges=splitter in _WHOLE_WORDS_FIRST,
        )
    )
    if splitter in _COMPOSED:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _splitter(splitter)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece(meta: Mapping[str, Any], tokens: list[str]) -> Tokenizer:
    """SentencePiece merges the neighbours whose union scores best, so scores give the merges' order."""
    types = meta.get("tokenizer.ggml.token_type") or [_NORMAL] * len(tokens)
    scores = dict(zip(tokens, _list(meta, "scores"), strict=True))
    pieces = [token for token, kind in zip(tokens, types, strict=True) if kind == _NORMAL]
    unknown = meta.get("tokenizer.ggml.unknown_token_id")
    tokenizer = Tokenizer(
        BPE(
            vocab={token: index for index, token in enumerate(tokens)},
            merges=_merges(pieces, scores),
            unk_token=None if unknown is None else tokens[int(unknown)],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    spaces: list[normalizers.Normalizer] = [normalizers.Replace(" ", _SPACE)]
    texts: list[decoders.Decoder] = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if meta.get("tokenizer.ggml.add_space_prefix", True):
        spaces.insert(0, normalizers.Prepend(_SPACE))
        texts.append(decoders.Strip(" ", 1, 0))
    tokenizer.normalizer = normalizers.Sequence(spaces)
    tokenizer.decoder = decoders.Sequence(texts)
    return tokenizer


def _merges(pieces: list[str], scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """Every way to put a piece together out of two others, the best-scoring pieces' first."""
    known = set(pieces)
    found = [
        (piece[:at], piece[at:])
        for piece in sorted(pieces, key=lambda piece: -scores[piece])
        for at in range(1, len(piece))
    ]
    return [(left, right) for left, right in found if left in known and right in known]


def _list(meta: Mapping[str, Any], name: str) -> list[Any]:
    found = meta.get(f"tokenizer.ggml.{name}")
    if not isinstance(found, list):
        raise TokenizerError(f"the file lacks the list tokenizer.ggml.{name}")
    return cast("list[Any]", found)


def tokenizer_config(meta: Mapping[str, Any], length: int) -> dict[str, Any]:
    """The content of `tokenizer_config.json`: special tokens by role, and the chat template.

    `length` is the model's context, in tokens.
    """
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": length,
    }
    roles = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    for role, name in roles.items():
        index = meta.get(f"tokenizer.ggml.{name}_token_id")
        if index is not None:
            config[f"{role}_token"] = meta["tokenizer.ggml.tokens"][int(index)]
    if template := meta.get("tokenizer.chat_template"):
        config["chat_template"] = template
    return config


def _splitter(name: str) -> pre_tokenizers.PreTokenizer:
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words])
    if name in ("default", "gpt-2"):
        return words
    if name in _WORDS:
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_WORDS[name]), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    raise TokenizerError(f"the way {name!r} splits words is not known here")


def _add_special_tokens(tokenizer: Tokenizer, tokens: list[str], types: list[int]) -> None:
    marked = {_CONTROL, _USER_DEFINED}
    for token, kind in zip(tokens, types, strict=False):
        if kind in marked:
            special = kind == _CONTROL
            added = [AddedToken(token, normalized=False, special=special)]
            tokenizer.add_tokens(added)  # pyright: ignore[reportUnknownMemberType]


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right
