"""The bits of every token's scores, in an engine that is asked the same prompts in many ways.

Scores, not tokens, are compared: a difference in the last bit is a fault long before it changes a token.
`python -m zerolayer_dev.testing.score_bits MODEL` reads a course from its standard input, follows it in a
process, and so an engine, of its own, and prints the outcome.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from unittest import mock

import torch
from torch import Tensor

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine import assemble
from zerolayer_worker.engine.api import Finished, GenerationRequest, SamplingParams
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.sampling.choice import sampler_for
from zerolayer_worker.sampling.provider import Choice, Head, SamplerProvider, SamplingControls

KINDS: Final[dict[str, dict[str, Any]]] = {
    "fp32": {"dtype": "float32"},
    "int8": {"dtype": "float32", "quantization": "int8"},
    "fp32-torch": {"dtype": "float32", "kernels": "torch"},
}
"""How CPUs keep weights and decode with them, as settings; the last one is for want of a compiler."""

Bits = dict[str, list[str]]
"""Distinct digests of each token's hidden state and scores, by `prompt's length/token's position`."""


@dataclass(frozen=True, slots=True)
class Round:
    """One way to ask all prompts of a course.

    Attributes:
        name: tells the rounds of a course apart.
        batch: prompts that are asked at once; the last ones may be fewer.
        fillers: other prompts, longer than all of these, that are asked before and take the pages.
    """

    name: str
    batch: int
    fillers: int = 0


@dataclass(frozen=True, slots=True)
class Course:
    """What an engine is asked.

    Attributes:
        rounds: one after the other.
        lengths: of the prompts in tokens, each another one, in the order in which they are asked.
        settings: fields of the `EngineConfig` beside the model.
        tokens: of each answer.
    """

    rounds: Sequence[Round]
    lengths: Sequence[int]
    settings: dict[str, Any]
    tokens: int = 9


@dataclass(slots=True)
class Seen:
    """What was seen in a round.

    Attributes:
        rows: most tokens that were chosen in one step.
        cached: tokens that were cached of each prompt, by its length.
    """

    bits: Bits = field(default_factory=dict[str, list[str]])
    rows: int = 0
    cached: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a course; `rounds` by their names."""

    fingerprint: str
    kernels: str
    preemptions: int
    rounds: dict[str, Seen]


class Noted:
    """A sampler that notes the bits of what it chooses from; a request's seed is its prompt's length."""

    def __init__(self, sampler: SamplerProvider, head: Head) -> None:
        self._sampler = sampler
        self._head = head
        self.seen = Seen()

    @property
    def second_passes(self) -> int:
        """See `SamplerProvider`."""
        return self._sampler.second_passes

    def sample(self, hidden: Tensor, controls: Sequence[SamplingControls]) -> list[Choice]:
        """See `SamplerProvider`."""
        scores = torch.cat([tile.scores(hidden) for tile in self._head.tiles], dim=1)
        self.seen.rows = max(self.seen.rows, len(controls))
        for state, row, each in zip(hidden, scores, controls, strict=False):
            found = self.seen.bits.setdefault(f"{each.seed}/{each.position}", [])
            digest = blake2b(torch.cat((state.float(), row)).numpy().tobytes(), digest_size=16).hexdigest()
            if digest not in found:
                found.append(digest)
        return self._sampler.sample(hidden, controls)


@contextmanager
def noted_engine(model: Path, settings: dict[str, Any]) -> Iterator[tuple[TorchEngine, Noted]]:
    """An engine of a model folder, and what notes its bits."""
    noted: list[Noted] = []

    def noting(head: Any, *others: Any) -> Noted:
        noted.append(Noted(sampler_for(head, *others), head))
        return noted[0]

    config = EngineConfig(model, "m", **{"consistency_share": 0.0, **settings})
    # Warming up takes seconds and is no matter of bits.
    with mock.patch.multiple(assemble, sampler_for=noting, warm_up=lambda *_args, **_kwargs: 0):
        engine = load_engine(config, lambda _stage: None)
    try:
        yield engine, noted[0]
    finally:
        engine.close()


def follow(model: Path, course: Course) -> Outcome:
    """Follows a course in an engine of its own, in this process."""
    with noted_engine(model, course.settings) as (engine, noted):
        rounds = {each.name: asyncio.run(_ask_all(engine, noted, course, each)) for each in course.rounds}
        return Outcome(
            fingerprint=engine.fingerprint,
            kernels=engine.info.kernels,
            preemptions=engine.stats().preemptions,
            rounds=rounds,
        )


def follow_afresh(model: Path, courses: Sequence[Course], at_once: int) -> list[Outcome]:
    """Follows each course in a process of its own.

    Raises:
        RuntimeError: a process failed; what it wrote is in the message.
    """
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda course: _in_a_process(model, course), courses))


def differing(reference: Bits, found: Bits) -> list[str]:
    """The tokens whose bits are not just those of the reference."""
    return [key for key in reference | found if reference.get(key) != found.get(key)]


async def _ask_all(engine: TorchEngine, noted: Noted, course: Course, way: Round) -> Seen:
    noted.seen = Seen()
    for number in range(way.fillers):
        await _ask(engine, max(course.lengths) + 1 + number, tokens=1)
    noted.seen = seen = Seen()
    for start in range(0, len(course.lengths), way.batch):
        lengths = course.lengths[start : start + way.batch]
        cached = await asyncio.gather(*(_ask(engine, length, course.tokens) for length in lengths))
        seen.cached |= dict(zip(map(str, lengths), cached, strict=True))
    return seen


async def _ask(engine: TorchEngine, length: int, tokens: int) -> int:
    """Asks a prompt that its length names; returns how much of it was cached.

    Neighbouring tokens are anything but regular: else they would have similar embeddings.
    """
    prompt = tuple((7919 * (length + 1) * (place + 1)) % engine.info.vocab_size for place in range(length))
    params = SamplingParams(intent=Intent.DETERMINISTIC, seed=length)
    async for event in engine.generate(GenerationRequest("r", prompt, tokens, params)):
        if isinstance(event, Finished):
            return event.cached_tokens
    raise RuntimeError(f"the prompt of {length} tokens got no answer")


def _in_a_process(model: Path, course: Course) -> Outcome:
    command = [sys.executable, "-m", __spec__.name, str(model)]
    ran = subprocess.run(
        command, input=json.dumps(asdict(course)), capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    found = json.loads(ran.stdout)
    return Outcome(**{**found, "rounds": {name: Seen(**each) for name, each in found["rounds"].items()}})


def _main() -> None:
    read = json.load(sys.stdin)
    course = Course(**{**read, "rounds": [Round(**each) for each in read["rounds"]]})
    print(json.dumps(asdict(follow(Path(sys.argv[1]), course))))


if __name__ == "__main__":
    _main()
