"""`zerolayer-worker anchor`: make and judge bundles, look at them, and bring them into a cluster."""

from typing import TYPE_CHECKING

from zerolayer_worker.commands import anchor_evaluate, anchor_inspect, anchor_pack, anchor_train

if TYPE_CHECKING:
    from zerolayer_worker.commands import Subparsers


def add_parser(commands: "Subparsers") -> None:
    """Adds the command and its actions."""
    parser = commands.add_parser(
        "anchor", help="make knowledge anchors, judge them, and bring them into a cluster"
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for action in (anchor_train, anchor_evaluate, anchor_inspect, anchor_pack):
        action.add_parser(actions)
