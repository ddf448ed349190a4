"""What was asked of the engine and what its slots did, as counters that only grow."""

from zerolayer_worker.engine.api import LoadCounts


class LoadAccount:
    """Follows requests from the queue into a slot and out of it.

    The integrals are brought up to date whenever a request changes place, so they are exact whenever they
    are read. Times are in seconds of one monotonic clock and never go back; the caller sees to that by
    reading the clock under the lock that guards the account. A request that the account does not know came
    before it began, and is none of its business.
    """

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._started: dict[str, float] = {}
        self._received = 0
        self._served = 0
        self._busy_slot_s = 0.0
        self._waiting_request_s = 0.0
        self._served_slot_s = 0.0
        self._since = 0.0

    def arrived(self, request_id: str, now: float) -> None:
        """A request was put into the queue."""
        self._pass(now)
        self._waiting.add(request_id)
        self._received += 1

    def started(self, request_id: str, now: float) -> None:
        """A request got a slot."""
        if request_id in self._waiting:
            self._pass(now)
            self._waiting.remove(request_id)
            self._started[request_id] = now

    def waits_again(self, request_id: str, now: float) -> None:
        """A request had to give its slot up."""
        if request_id in self._started:
            self._pass(now)
            self._served_slot_s += now - self._started.pop(request_id)
            self._waiting.add(request_id)

    def left(self, request_id: str, now: float) -> None:
        """A request is over, or was given up, whether it had a slot or not."""
        self._pass(now)
        self._waiting.discard(request_id)
        started = self._started.pop(request_id, None)
        if started is not None:
            self._served += 1
            self._served_slot_s += now - started

    def counts(self, now: float) -> LoadCounts:
        """The counters as of now."""
        self._pass(now)
        return LoadCounts(
            received=self._received,
            served=self._served,
            busy_slot_seconds=self._busy_slot_s,
            waiting_request_seconds=self._waiting_request_s,
            served_slot_seconds=self._served_slot_s,
        )

    def _pass(self, now: float) -> None:
        elapsed = now - self._since
        self._busy_slot_s += elapsed * len(self._started)
        self._waiting_request_s += elapsed * len(self._waiting)
        self._since = now
