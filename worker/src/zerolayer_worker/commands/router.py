"""`zerolayer-worker router`: train the map that steers sampling, and measure what it does."""

from typing import TYPE_CHECKING

from zerolayer_worker.commands import router_evaluate, router_train

if TYPE_CHECKING:
    from zerolayer_worker.commands import Subparsers


def add_parser(commands: "Subparsers") -> None:
    """Adds the command and its actions."""
    parser = commands.add_parser("router", help="train what steers sampling by entropy, and measure it")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for action in (router_train, router_evaluate):
        action.add_parser(actions)
