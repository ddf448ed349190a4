"""What the harness needs of an engine."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from zerolayer_bench.worker.cases import Answer
from zerolayer_bench.worker.weights import Weights


class UnavailableError(RuntimeError):
    """This engine can't do that here; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What an engine is started with; `length` is the longest prompt plus answer, in tokens."""

    weights: Weights
    precision: str
    batch: int
    length: int
    threads: int

    @property
    def gguf(self) -> Path:
        """The GGUF file of this precision."""
        return self.weights.gguf[self.precision]


class Engine(Protocol):
    """Loaded and ready. All prompts are submitted at once; greedy, no end token, no prefix reuse."""

    def generate(self, prompts: Sequence[Sequence[int]], new: int) -> list[Answer]:
        """Returns an answer of `new` tokens for each prompt, in the prompts' order."""
        ...

    def close(self) -> None:
        """Frees what ending the process would not."""
        ...


@dataclass(slots=True)
class Stopwatch:
    """Collects one answer's tokens; starts when it is made."""

    began: float = field(default_factory=time.perf_counter)
    stamps: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    def take(self, tokens: Sequence[int]) -> None:
        """Tokens came, just now."""
        self.stamps += [time.perf_counter() - self.began] * len(tokens)
        self.tokens += tokens

    def take_text(self, text: str) -> None:
        """A token came, just now, as text."""
        self.stamps.append(time.perf_counter() - self.began)
        self.pieces.append(text)

    def answer(self) -> Answer:
        """What came."""
        return Answer(tuple(self.stamps), tuple(self.tokens), "".join(self.pieces))
