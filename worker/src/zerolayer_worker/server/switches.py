"""Which requests go on with a conversation under another intent."""

from collections import OrderedDict
from typing import Final

from zerolayer_worker.common.intents import Intent

MAX_CONVERSATIONS: Final = 4096
"""Conversations whose last intent is remembered; the one that was not heard of for longest goes first."""


class IntentSwitches:
    """Remembers the last intent of conversations by a hash of how they began, and no text."""

    def __init__(self) -> None:
        self._last: OrderedDict[int, Intent] = OrderedDict()

    def switched(self, opening: int, intent: Intent, *, continued: bool) -> bool:
        """Takes note of a request's intent; whether its conversation had another one before.

        Args:
            opening: a hash of the conversation's first messages.
            intent: the request's.
            continued: whether an answer precedes the request; two conversations may begin alike.
        """
        before = self._last.pop(opening, None)
        self._last[opening] = intent
        if len(self._last) > MAX_CONVERSATIONS:
            self._last.popitem(last=False)
        return continued and before is not None and before is not intent
