"""The raw numbers of a measurement: `<name>.json`, with the machine that each piece ran on."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from zerolayer_bench.claims.plan import GROWING, PIECES


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece's raw numbers.

    Attributes:
        about: machine, versions, commit and date; `others` is the share of the processors that other
            processes had meanwhile, in [0, 1].
    """

    about: dict[str, Any]
    data: dict[str, Any]


Records = Mapping[str, list[dict[str, Any]]]
"""The data of every piece in the plan's order, by the measurement's name."""


def load(folder: Path, name: str) -> dict[str, Piece]:
    """Returns the pieces that were measured, by label, in the plan's order."""
    path = folder / f"{name}.json"
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))["pieces"]
    return {label: Piece(**found[label]) for label in PIECES[name] if label in found}


def add(folder: Path, name: str, label: str, piece: Piece) -> None:
    """Writes a piece beside those that are there."""
    pieces = load(folder, name) | {label: piece}
    lines = ",\n".join(f"{json.dumps(label)}: {json.dumps(asdict(each))}" for label, each in pieces.items())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(f'{{"pieces": {{\n{lines}\n}}}}\n', encoding="utf-8")


def load_all(folder: Path) -> dict[str, dict[str, Piece]]:
    """Returns every measurement that has a piece, by name."""
    return {name: pieces for name in PIECES if (pieces := load(folder, name))}


def data_of(measured: Mapping[str, Mapping[str, Piece]]) -> Records:
    """Returns only the data, of those measurements that can be judged by."""
    return {
        name: [piece.data for piece in pieces.values()]
        for name, pieces in measured.items()
        if name in GROWING or len(pieces) == len(PIECES[name])
    }
