"""Whose request runs next: the client's that has had the least so far. Knows no tensors.

The virtual token counter of Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024: each client
has a counter of the tokens it was served, weighted by what they cost; the waiting client with the lowest goes
next; and one that comes back after a pause is lifted to the lowest of those that stayed, as time in which it
asked for nothing is no credit.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

PROMPT_WEIGHT: Final = 1
ANSWER_WEIGHT: Final = 2
"""What a computed token of a prompt and one of an answer count for; the paper's weights."""

REMEMBERED: Final = 1024
"""Clients without a request whose counters are kept. Of more, those that left first are forgotten."""


class QueueFullError(Exception):
    """The queue, or the client's share of it, is full."""


@dataclass(slots=True)
class _Client:
    counter: int
    open: int = 0
    waiting: deque[str] = field(default_factory=deque[str])


class FairQueue:
    """Waiting requests in the order of their clients' counters, and of arrival within a client.

    A client alone may fill the queue. Where several want it, each may have an equal part: among them counts
    one that was refused lately, so that a full queue opens up to a client that came late.

    Args:
        places: requests that may wait beyond those that find a free row.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._clients: dict[str, _Client] = {}
        self._of: dict[str, str] = {}
        self._left: OrderedDict[str, int] = OrderedDict()
        self._floor = 0
        self._turns = 0
        self._refused: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        """Requests that wait."""
        return len(self._of)

    def check(self, client: str, *, free: int) -> None:
        """Says whether `push` would find a place.

        Raises:
            QueueFullError: it would not.
        """
        known = self._clients.get(client)
        held = len(known.waiting) if known else 0
        if len(self) >= free + self._places or held >= free + self._share(client):
            self._remember_refusal(client)
            raise QueueFullError

    def push(self, request_id: str, client: str, *, free: int) -> None:
        """Queues a request; `free` rows are left for those that wait.

        Raises:
            QueueFullError: there is no place for it; nothing has changed but that the client was refused.
        """
        self.check(client, free=free)
        known = self._clients.get(client)
        self._refused.pop(client, None)
        if known is None:
            counter = max(self._left.pop(client, 0), self._lowest())
            known = self._clients[client] = _Client(counter)
        known.open += 1
        known.waiting.append(request_id)
        self._of[request_id] = client

    def peek(self) -> str | None:
        """The request that is next, if any waits."""
        waiting = [each for each in self._clients.values() if each.waiting]
        # Of equals, the client that has been here longest.
        return min(waiting, key=lambda each: each.counter).waiting[0] if waiting else None

    def take(self, request_id: str) -> None:
        """Takes a request out to run it; it stays its client's until `close`."""
        self._clients[self._of.pop(request_id)].waiting.remove(request_id)
        self._turns += 1
        while self._refused and self._turns - next(iter(self._refused.values())) > self._places:
            self._refused.popitem(last=False)

    def drop(self, request_id: str) -> bool:
        """Forgets a request that waits; False if it does not."""
        client = self._of.pop(request_id, None)
        if client is None:
            return False
        self._clients[client].waiting.remove(request_id)
        self.close(client)
        return True

    def charge(self, client: str, *, prompt: int = 0, answer: int = 0) -> None:
        """Counts tokens that were computed for a client with an open request."""
        self._clients[client].counter += PROMPT_WEIGHT * prompt + ANSWER_WEIGHT * answer

    def close(self, client: str) -> None:
        """One of a client's requests is over."""
        known = self._clients[client]
        known.open -= 1
        if known.open:
            return
        del self._clients[client]
        self._floor = known.counter
        self._left[client] = known.counter
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)

    def _lowest(self) -> int:
        """The lowest counter of those with open requests; where there are none, that of the last to leave."""
        return min((each.counter for each in self._clients.values()), default=self._floor)

    def _share(self, client: str) -> int:
        wanting = {name for name, each in self._clients.items() if each.waiting} | {client}
        wanting.update(self._refused)
        return -(-self._places // len(wanting))

    def _remember_refusal(self, client: str) -> None:
        """It counts as wanting a place until it gets one, or more requests were taken than places are."""
        self._refused[client] = self._turns
        self._refused.move_to_end(client)
        if len(self._refused) > max(1, self._places):
            self._refused.popitem(last=False)
