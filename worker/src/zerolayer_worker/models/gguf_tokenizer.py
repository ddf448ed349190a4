"""The tokenizer inside a GGUF file, as the `tokenizers` library's own object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE

if TYPE_CHECKING:
    from collections.abc import Mapping

_LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Token types of the GGUF format (`gguf.TokenType`); the others are ordinary entries of the vocabulary.
_CONTROL = 3
_USER_DEFINED = 4


class TokenizerError(ValueError):
    """The vocabulary is of a kind that cannot be rebuilt; the message names it."""


def build_tokenizer(meta: Mapping[str, Any]) -> Tokenizer:
    """Rebuild the byte-level BPE tokenizer that the file describes.

    Args:
        meta: The fields of the GGUF file, by name.

    Raises:
        TokenizerError: The vocabulary is no byte-level BPE, or splits words in an unknown way.
    """
    kind = meta.get("tokenizer.ggml.model")
    if kind != "gpt2":
        raise TokenizerError(f"vocabulary of kind {kind!r} cannot be converted; only byte-level BPE can")
    splitter = str(meta.get("tokenizer.ggml.pre", "default"))
    lists = ("tokenizer.ggml.tokens", "tokenizer.ggml.merges")
    if lacking := [key for key in lists if not isinstance(meta.get(key), list)]:
        raise TokenizerError(f"the file lacks the list {lacking[0]}")
    tokens: list[str] = meta["tokenizer.ggml.tokens"]
    merges = [_pair(merge) for merge in meta["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(
        BPE(
            vocab={token: index for index, token in enumerate(tokens)},
            merges=merges,
            ignore_merges=splitter == "llama-bpe",
        )
    )
    tokenizer.pre_tokenizer = _splitter(splitter)
    tokenizer.decoder = decoders.ByteLevel()
    _add_special_tokens(tokenizer, tokens, meta.get("tokenizer.ggml.token_type", []))
    if meta.get("tokenizer.ggml.add_bos_token", False):
        bos = int(meta["tokenizer.ggml.bos_token_id"])
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{tokens[bos]} $A",
            pair=f"{tokens[bos]} $A {tokens[bos]} $B",
            special_tokens=[(tokens[bos], bos)],
        )
    return tokenizer


def tokenizer_config(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The content of `tokenizer_config.json`: special tokens by role, and the chat template."""
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": int(meta["llama.context_length"]),
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
    if name == "llama-bpe":
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_LLAMA3_WORDS), behavior="isolated"),
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
