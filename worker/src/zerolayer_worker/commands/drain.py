"""`zerolayer-worker drain`: tells the server on this machine to drain, and waits until it has."""

import argparse
import http.client
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zerolayer_worker.commands import Subparsers


def add_parser(commands: "Subparsers") -> None:
    """Adds the command."""
    parser = commands.add_parser("drain", help="drain the server on this machine and wait until it has")
    parser.add_argument("--ops-port", type=int, default=8081, help="the server's operations port (8081)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Asks the server to drain; it answers when nothing is in flight or its time is over."""
    connection = http.client.HTTPConnection("127.0.0.1", arguments.ops_port)
    try:
        connection.request("POST", "/drain")
        response = connection.getresponse()
        body = response.read().decode("utf-8", "replace")
    except OSError as error:
        sys.stderr.write(
            f"drain: no server answers on 127.0.0.1:{arguments.ops_port} (--ops-port): {error}\n"
        )
        return 1
    finally:
        connection.close()
    sys.stderr.write(f"drain: {response.status} {body}\n")
    return 0 if response.status == http.HTTPStatus.OK else 1
