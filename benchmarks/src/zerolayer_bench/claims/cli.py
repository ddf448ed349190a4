"""`python -m zerolayer_bench.claims --out DIR`."""

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from zerolayer_bench.claims.page import page
from zerolayer_bench.claims.plan import PIECES
from zerolayer_bench.claims.record import Piece, add, load, load_all
from zerolayer_bench.worker.rounds import call

_CHILD = "zerolayer_bench.claims.child"
_LIMIT_S = 460.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 1 where a piece could not be measured."""
    # An end from outside has to reach the process that is being measured, too.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    options = _parser().parse_args(arguments)
    began, failed = time.monotonic(), False
    for name, label in missing(options.out, options.only or tuple(PIECES)):
        if options.minutes is not None and time.monotonic() - began > 60 * options.minutes:
            break
        failed |= not _measured(options.out, name, label)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "claims.md").write_text(page(load_all(options.out)), encoding="utf-8")
    print(options.out / "claims.md")
    return int(failed)


def missing(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields what `folder` has no numbers of yet: measurement and piece."""
    for name in names:
        known = load(folder, name)
        yield from ((name, label) for label in PIECES[name] if label not in known)


def _measured(folder: Path, name: str, label: str) -> bool:
    began = time.monotonic()
    lines, reason = call({"name": name, "piece": label}, _LIMIT_S, _CHILD)
    if reason is None:
        add(folder, name, label, Piece(**lines[-1]))
    print(f"bench-claims: {name}, {label}: {reason or f'{time.monotonic() - began:.0f} s'}", file=sys.stderr)
    return reason is None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench-claims", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the raw numbers and of claims.md")
    parser.add_argument("--only", nargs="+", choices=tuple(PIECES), help="measurements; all if absent")
    parser.add_argument("--minutes", type=float, help="begin nothing after so many; what is done is kept")
    return parser
