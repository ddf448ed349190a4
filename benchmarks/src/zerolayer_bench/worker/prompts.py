"""The prompts: stretches of our own documents, as token ids, the same for every engine."""

from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

from zerolayer_dev.paths import repo_root

_TEXTS: Final = (
    "docs/updates.md",
    "docs/operator.md",
    "docs/failure-modes.md",
    "docs/anchors.md",
    "docs/crd.md",
)
# Prompts begin apart, so that no engine can take one's keys and values for another's.
_STRIDE: Final = 331


def prompts(folder: Path, length: int, count: int, turn: int = 0) -> list[list[int]]:
    """Returns `count` prompts of `length` tokens; another `turn` gives other ones.

    Raises:
        ValueError: the documents have fewer tokens.
    """
    root = repo_root()
    text = "\n".join((root / name).read_text(encoding="utf-8") for name in _TEXTS)
    ids: list[int] = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids
    starts = [(turn * count + index) * _STRIDE for index in range(count)]
    if starts[-1] + length > len(ids):
        raise ValueError(f"{len(ids)} tokens of text are too few for {count} prompts of {length}")
    return [ids[start : start + length] for start in starts]
