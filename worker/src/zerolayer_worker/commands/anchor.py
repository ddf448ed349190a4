"""`zerolayer-worker anchor`: look at bundles, and bring them into a cluster."""

from typing import TYPE_CHECKING

from zerolayer_worker.commands import anchor_inspect, anchor_pack

if TYPE_CHECKING:
    from zerolayer_worker.commands import Subparsers


def add_parser(commands: "Subparsers") -> None:
    """Adds the command and its actions."""
    parser = commands.add_parser("anchor", help="look at knowledge anchors and bring them into a cluster")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for action in (anchor_inspect, anchor_pack):
        action.add_parser(actions)
