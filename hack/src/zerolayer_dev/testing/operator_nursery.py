"""Operators that begin to work at once: forks of a process that has imported everything already.

A test that kills an operator a hundred times would wait a hundred times for its imports. Run as a module this
starts one operator for each line that it reads, with its own environment and output, and prints its PID.
"""

import os
import signal
import sys
from typing import NoReturn

# The process is not used here: with it comes all that the operator imports, so that forks have it.
from zerolayer_operator import cli, process  # noqa: F401


def serve() -> None:
    """Starts one operator for each line on standard input."""
    # Nobody asks how they ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        pid = os.fork()
        if not pid:
            _become_operator()
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def _become_operator() -> NoReturn:
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    # What it logs goes where the errors of this process go.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        cli.main([])
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    finally:
        os._exit(1)


if __name__ == "__main__":
    serve()
