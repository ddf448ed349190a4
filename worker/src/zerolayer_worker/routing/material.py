"""What a router learns from: final hidden states over texts, and how sure the model was at each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from zerolayer_worker.anchors.lessons import Lesson
from zerolayer_worker.anchors.replay import read_text_file, windows, written_by
from zerolayer_worker.models.dense import DenseModel
from zerolayer_worker.models.packing import pack
from zerolayer_worker.models.tokenizer import ModelTokenizer

WINDOW: Final = 128
OWN_TEXTS, OWN_TOKENS, OWN_SEED = 160, 96, 20
_ROWS: Final = 256


@dataclass(frozen=True, slots=True)
class Material:
    """One row per token.

    Attributes:
        hidden: fp32 `[n, hidden_size]`: final hidden states.
        embedding: fp32 `[n, hidden_size]`: embeddings of the tokens they are of.
        entropy: fp32 `[n]`: of the next token's distribution at temperature 1, in nats.
    """

    hidden: Tensor
    embedding: Tensor
    entropy: Tensor

    def __len__(self) -> int:
        """How many tokens."""
        return self.entropy.shape[0]

    def part(self, rows: Tensor) -> "Material":
        """Those rows."""
        return Material(self.hidden[rows], self.embedding[rows], self.entropy[rows])


class MaterialError(ValueError):
    """The texts can't be used."""


@torch.inference_mode()
def observe(
    model: DenseModel, texts: Sequence[Lesson], say: Callable[[int, int], None] = lambda _done, _all: None
) -> Material:
    """Runs the model over each text; of each, the predictions that count are observed."""
    hidden: list[Tensor] = []
    entropy: list[Tensor] = []
    tokens: list[int] = []
    for done, text in enumerate(texts, start=1):
        states = model.hidden(pack([text.ids]))[text.start - 1 :]
        hidden.append(states.float())
        entropy += [_entropy(model, rows) for rows in torch.split(states, _ROWS)]
        tokens += text.ids[text.start - 1 :]
        say(done, len(texts))
    embedding = model.tensors["model.embed_tokens.weight"][torch.tensor(tokens)].float()
    return Material(torch.cat(hidden), embedding, torch.cat(entropy))


def of_files(paths: Sequence[Path], tokenizer: ModelTokenizer, count: int) -> list[Lesson]:
    """At most `count` windows of `WINDOW` tokens, evenly spread over the files' texts.

    Raises:
        ReplayError: a file can't be read.
        MaterialError: all of them together hold less than one window.
    """
    found = [window for path in paths for window in windows(read_text_file(path), tokenizer, WINDOW)]
    if not found:
        names = ", ".join(map(str, paths))
        raise MaterialError(f"{names}: less than {WINDOW} tokens; name longer texts")
    picked = found[:: max(1, len(found) // count)][:count]
    return [Lesson(ids, 1) for ids in picked]


def of_the_models_own(model: DenseModel, tokenizer: ModelTokenizer) -> list[Lesson]:
    """What the model itself says of common things: conversations, as serving sees them, and prose."""
    return written_by(model, tokenizer, OWN_TEXTS, OWN_TOKENS, OWN_SEED)


def _entropy(model: DenseModel, states: Tensor) -> Tensor:
    logprobs = model.logprobs(states)
    return -(logprobs.exp() * logprobs).sum(dim=1)
