"""`zerolayer-worker`: serve, drain, model fetch, model convert, anchor, golden, router.

Only the standard library is imported before a command is known: `drain` runs in a hook that has to be fast
and must work whatever state the server is in.
"""

import argparse
import sys
from collections.abc import Sequence

from zerolayer_worker.commands import anchor, drain, golden, model, router, serve


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 done, 1 failed, 2 wrong usage."""
    parser = argparse.ArgumentParser(
        prog="zerolayer-worker", description="A torch inference server for one model."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (serve, drain, model, anchor, golden, router):
        command.add_parser(commands)
    arguments = parser.parse_args(argv)
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
