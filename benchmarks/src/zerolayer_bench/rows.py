"""Tables of what is measured, written row by row: what is done stays where a run is broken off."""

import csv
import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RowT = TypeVar("RowT", bound="DataclassInstance")


def record(path: Path, rows: Iterable[RowT], line: Callable[[RowT], str]) -> None:
    """Writes a table as CSV with a header, prints each row as it comes, and in the end the table's path.

    Args:
        path: of the table; its folder is made.
        rows: dataclasses of one type, at least one.
        line: a row as it is printed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(row)])
                writer.writeheader()
            writer.writerow(dataclasses.asdict(row))
            print(line(row), flush=True)
    print(path)
