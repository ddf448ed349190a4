"""Lists of objects that hardly ever change, kept until a watch tells of a change."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from zerolayer_operator.api.kinds import DISRUPTION_BUDGET, NETWORK_POLICY, SERVICE, SERVICE_ACCOUNT, Kind

Object = dict[str, Any]
Place = tuple[str, str]
"""A pool's namespace and name."""

STEADY: Final = frozenset({SERVICE_ACCOUNT, NETWORK_POLICY, SERVICE, DISRUPTION_BUDGET})
"""Kinds of which nothing but the operator's own configuration is read. Seen some milliseconds late they are
applied once more, which changes nothing; Deployments, autoscalers and pods are what decisions rest on."""


class KeptLists:
    """What was listed of a pool's steady children.

    With very many pools half of all calls were for objects that nobody had touched.
    """

    def __init__(self) -> None:
        self._lists: dict[Place, dict[Kind, list[Object]]] = {}

    async def get(
        self, place: Place, kind: Kind, look: Callable[[], Awaitable[list[Object]]]
    ) -> list[Object]:
        """What is kept, or what a look finds, which is kept then.

        Args:
            place: The pool.
            kind: Which of its children.
            look: Lists them; what it raises is passed on.
        """
        lists = self._lists.setdefault(place, {})
        if kind not in lists:
            # Into a list that was dropped meanwhile: the look may be older than the change.
            lists[kind] = await look()
        return lists[kind]

    def drop(self, place: Place) -> None:
        """Have a pool's children looked at anew, as something may have changed."""
        self._lists.pop(place, None)
