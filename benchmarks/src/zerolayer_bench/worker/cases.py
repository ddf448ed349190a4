"""What is measured, and what a measurement leaves behind."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

PRECISIONS: Final = ("fp32", "bf16", "int8", "int4")
OURS: Final = "zerolayer"
PEERS: Final = ("transformers", "llama.cpp", "openvino")
# The classes of weights that each engine has; `weights.py` says what they are.
OFFERS: Final[dict[str, tuple[str, ...]]] = {
    OURS: PRECISIONS,
    "transformers": ("fp32", "bf16"),
    "llama.cpp": PRECISIONS,
    "openvino": PRECISIONS,
}


@dataclass(frozen=True, slots=True, order=True)
class Contender:
    """An engine at one precision of its weights."""

    engine: str
    precision: str

    def __str__(self) -> str:
        return f"{self.engine} {self.precision}"


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """A point of the grid: requests at once, prompt length and new tokens of each, in tokens."""

    batch: int
    prompt: int
    new: int


@dataclass(frozen=True, slots=True)
class Answer:
    """One request: when each token came, in seconds since all were submitted, and what came.

    `tokens` is empty where an engine tells only text.
    """

    stamps: tuple[float, ...]
    tokens: tuple[int, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement of a cell.

    Attributes:
        round: which turn of the interleaved rounds.
        ready_s: from the start of the process to the engine being ready.
        peak_mib: the process' largest resident set since the cell began (`VmHWM`).
        load: the machine's load average over a minute just before.
        stolen: share of processor time that others had meanwhile, in [0, 1].
    """

    contender: Contender
    cell: Cell
    round: int
    answers: tuple[Answer, ...]
    ready_s: float
    peak_mib: float
    load: float
    stolen: float


@dataclass(frozen=True, slots=True)
class Missing:
    """A contender that gave no figure, and why."""

    contender: Contender
    batch: int
    reason: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """The fewest tokens at the beginning, over a cell's requests, that are the reference's."""

    contender: Contender
    cell: Cell
    tokens: int


@dataclass(frozen=True, slots=True)
class Results:
    """A run: where and with what it was made, and every sample.

    Attributes:
        profile: a table of our time by operation, by the name of what was profiled.
    """

    machine: dict[str, Any]
    samples: tuple[Sample, ...]
    missing: tuple[Missing, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    profile: dict[str, str] = field(default_factory=dict)


def contenders(precisions: Sequence[str], engines: Sequence[str]) -> list[Contender]:
    """Returns the engines that have each precision, precision by precision."""
    return [Contender(engine, kind) for kind in precisions for engine in engines if kind in OFFERS[engine]]


def write(results: Results, path: Path) -> None:
    """Writes a run as JSON; times are rounded to microseconds, which is what keeps the file small."""
    document = asdict(results)
    for sample in document["samples"]:
        for answer in sample["answers"]:
            answer["stamps"] = [round(stamp, 6) for stamp in answer["stamps"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")


def read(path: Path) -> Results:
    """Reads what `write` wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return Results(
        machine=document["machine"],
        samples=tuple(sample_from(entry) for entry in document["samples"]),
        missing=tuple(
            Missing(Contender(**entry["contender"]), entry["batch"], entry["reason"])
            for entry in document["missing"]
        ),
        agreements=tuple(
            Agreement(Contender(**entry["contender"]), Cell(**entry["cell"]), entry["tokens"])
            for entry in document["agreements"]
        ),
        profile=document["profile"],
    )


def sample_from(entry: dict[str, Any]) -> Sample:
    """Returns the sample whose `asdict` this is."""
    answers = tuple(
        Answer(tuple(one["stamps"]), tuple(one["tokens"]), one["text"]) for one in entry["answers"]
    )
    known = {"contender": Contender(**entry["contender"]), "cell": Cell(**entry["cell"]), "answers": answers}
    return Sample(**entry | known)
