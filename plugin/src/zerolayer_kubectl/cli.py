"""The command line of `kubectl zerolayer`."""

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from zerolayer_kubectl import commands
from zerolayer_kubectl.display import PROGRAM, complain
from zerolayer_kubectl.fields import seconds
from zerolayer_kubectl.follow import TimedOutError
from zerolayer_kubectl.kubectl import Kubectl, KubectlError
from zerolayer_kubectl.wishes import RefusedError

EXIT_REFUSED: Final = 2
EXIT_TIMED_OUT: Final = 3
EXIT_INTERRUPTED: Final = 130

_DESCRIPTION: Final = """\
Watch, promote, roll back and understand the updates of ZeroLayerPools.

exit codes: 0 done; 1 the update ended otherwise than was waited for; 2 wrong usage, refused, or the
cluster could not be asked; 3 --timeout has passed; 4 --until-done waits for a person (promotion: Manual)"""

_PROMOTE: Final = (
    "Let the canary take over now, whatever the verdict still lacks; a failed check ends it still."
)

_FLAGS: Final = {
    "context": "context of the kubeconfig",
    "kubeconfig": "file with clusters and users",
    "cluster": "cluster of the kubeconfig",
    "user": "user of the kubeconfig",
    "as": "user to impersonate",
    "server": "address of the API server",
    "token": "bearer token",
    "request-timeout": "how long one request may take, such as 10s",
}
"""Flags that mean what they mean to kubectl, and are handed on to it."""

_DURATION: Final = re.compile(r"([0-9]+[hms])+")


def run() -> NoReturn:
    """The program."""
    sys.exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; see the text of `--help`."""
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="replace")  # a terminal may not know every character
    parser = _parser()
    arguments = parser.parse_args(argv)
    given = vars(arguments)
    if given.get("timeout") is not None and not any(
        given.get(key) for key in ("watch", "until_done", "wait")
    ):
        parser.error("--timeout needs --watch, --until-done or --wait")
    try:
        return arguments.run(Kubectl(_flags(arguments)), arguments)
    except (KubectlError, RefusedError) as error:
        complain(str(error))
        return EXIT_REFUSED
    except TimedOutError:
        complain(f"it took longer than {arguments.timeout} s")
        return EXIT_TIMED_OUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _drop_the_rest()  # whoever read has enough
        return commands.EXIT_DONE
    except OSError as error:
        _drop_the_rest()
        complain(f"this can't be shown: {error.strerror or error}")
        return EXIT_REFUSED


def _drop_the_rest() -> None:
    """What Python would still write when it ends goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flags(arguments: argparse.Namespace) -> list[str]:
    given = vars(arguments)
    names = ("namespace", *_FLAGS)
    return [f"--{name}={value}" for name in names if (value := given.get(name.replace("-", "_"))) is not None]


def _parser() -> argparse.ArgumentParser:
    common = _common()
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=_DESCRIPTION,
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    listed = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str, run: Callable[[Kubectl, argparse.Namespace], int], text: str
    ) -> argparse.ArgumentParser:
        made = listed.add_parser(name, parents=[common], help=text, description=text)
        made.set_defaults(run=run)
        made.add_argument("pool", metavar="POOL", type=_name, help="name of the pool")
        return made

    status = add("status", commands.status, "Show how a pool and its update are, on one screen.")
    status.add_argument("-w", "--watch", action="store_true", help="follow it, until Ctrl-C")
    status.add_argument(
        "--until-done",
        action="store_true",
        help="follow it until the update is over: exit code 0 promoted, 1 anything else, 4 a person has to "
        "decide",
    )
    _timeout(status)
    _output(status, "json")
    for name, run, text in (
        (
            "promote",
            commands.promote,
            _PROMOTE,
        ),
        ("rollback", commands.roll_back, "Leave the new revision."),
    ):
        made = add(name, run, text)
        made.add_argument("-y", "--yes", action="store_true", help="do not ask")
        made.add_argument("--wait", action="store_true", help="follow it until that is done")
        _timeout(made)
    _output(add("history", commands.history, "List the last updates, the newest first."), "json", "wide")
    text = "Tell why the update is where it is, what it waits for, and what you can do."
    _output(add("explain", commands.explanation, text), "json")
    return parser


def _common() -> argparse.ArgumentParser:
    """What may stand before a command and after it; kubectl itself takes none before the plugin's name."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = common.add_argument_group("as with kubectl")
    group.add_argument("-n", "--namespace", help="namespace of the pool; the context's if absent")
    for name, text in _FLAGS.items():
        group.add_argument(f"--{name}", help=text)
    return common


def _timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--timeout", type=_seconds, metavar="10m", help="how long to follow it at most")


def _output(parser: argparse.ArgumentParser, *formats: str) -> None:
    parser.add_argument("-o", "--output", choices=formats, help="instead of text")


def _seconds(value: str) -> int:
    if not _DURATION.fullmatch(value):
        raise argparse.ArgumentTypeError(f"{value!r} is no duration such as 90s or 1h30m")
    return seconds({"timeout": value}, "timeout", 0)


def _name(value: str) -> str:
    """A pool's name, also as kubectl prints it.

    kubectl would take several for a list, and a flag for a flag.
    """
    name = value.rpartition("/")[2]
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name):
        raise argparse.ArgumentTypeError(f"{value!r} is no name of a pool")
    return name
