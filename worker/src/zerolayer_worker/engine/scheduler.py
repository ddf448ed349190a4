"""Decides which sequences run in the next step. Knows numbers of tokens and slots, no tensors."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass


class QueueFullError(Exception):
    """No slot is free and the queue has reached its limit."""


@dataclass(frozen=True, slots=True)
class PrefillChunk:
    """Tokens `start … start + count - 1` of one sequence's prompt; `last` if its first token follows."""

    request_id: str
    slot: int
    start: int
    count: int
    last: bool


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """The next token of one sequence."""

    request_id: str
    slot: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What one step computes: at most one prompt chunk, and a token for every decoding sequence.

    `admitted` are the sequences that got their slots for it.
    """

    prefill: PrefillChunk | None
    decode: tuple[DecodeRow, ...]
    admitted: tuple[str, ...] = ()


@dataclass(slots=True)
class _Entry:
    request_id: str
    prompt_tokens: int
    slot: int = -1
    computed: int = 0

    @property
    def prefilled(self) -> bool:
        return self.computed >= self.prompt_tokens


class Scheduler:
    """First come, first served into slots; prompts in chunks, one chunk per step, taking turns.

    A prompt's chunks always begin at multiples of the chunk size, whatever else runs, as the bits of the
    result depend on where it is cut.
    """

    def __init__(self, *, slots: int, max_queue: int, chunk: int) -> None:
        if slots < 1 or chunk < 1 or max_queue < 0:
            raise ValueError("slots and chunk must be at least 1, max_queue at least 0")
        self._slots = slots
        self._max_queue = max_queue
        self._chunk = chunk
        self._free = list(range(slots - 1, -1, -1))
        self._waiting: dict[str, _Entry] = {}
        self._running: dict[str, _Entry] = {}
        self._prompts: deque[str] = deque()

    @property
    def slots(self) -> int:
        """Sequences that can run at once."""
        return self._slots

    @property
    def waiting(self) -> int:
        """Sequences without a slot."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Sequences with a slot."""
        return len(self._running)

    @property
    def spare(self) -> int:
        """Slots that are left when all that wait have theirs."""
        return max(0, self._slots - self.waiting - self.running)

    @property
    def prompting(self) -> bool:
        """Whether there are prompts that are not computed to their ends."""
        return bool(self._waiting or self._prompts)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self._waiting and not self._running

    def add(self, request_id: str, prompt_tokens: int) -> None:
        """Queues a sequence.

        Raises:
            QueueFullError: the limit is reached; nothing has changed.
            ValueError: the id is in use or the prompt empty.
        """
        if prompt_tokens < 1:
            raise ValueError("a prompt needs at least one token")
        if request_id in self._waiting or request_id in self._running:
            raise ValueError(f"request id {request_id!r} is in use")
        self.check_room("")
        self._waiting[request_id] = _Entry(request_id, prompt_tokens)

    def check_room(self, client: str) -> None:  # noqa: ARG002 - all clients share one queue
        """Says whether a sequence of a client would find a place.

        Raises:
            QueueFullError: the limit is reached.
        """
        if self.waiting + self.running >= self._slots + self._max_queue:
            raise QueueFullError

    def remove(self, request_id: str) -> bool:
        """Forgets a sequence that finished or was given up and frees its slot; False if it was not there."""
        if self._waiting.pop(request_id, None) is not None:
            return True
        entry = self._running.pop(request_id, None)
        if entry is None:
            return False
        self._free.append(entry.slot)
        if not entry.prefilled:
            self._prompts.remove(request_id)
        return True

    def schedule(self) -> StepPlan:
        """Fills free slots from the queue and says what to run; counts the prompt chunk as computed."""
        admitted = tuple(self._admit())
        decode = tuple(DecodeRow(e.request_id, e.slot) for e in self._running.values() if e.prefilled)
        return StepPlan(self._next_chunk(), decode, admitted)

    def _admit(self) -> Iterator[str]:
        while self._free and self._waiting:
            entry = self._waiting.pop(next(iter(self._waiting)))
            entry.slot = self._free.pop()
            self._running[entry.request_id] = entry
            self._prompts.append(entry.request_id)
            yield entry.request_id

    def _next_chunk(self) -> PrefillChunk | None:
        if not self._prompts:
            return None
        entry = self._running[self._prompts.popleft()]
        start = entry.computed
        entry.computed = min(start + self._chunk, entry.prompt_tokens)
        if not entry.prefilled:
            self._prompts.append(entry.request_id)
        return PrefillChunk(entry.request_id, entry.slot, start, entry.computed - start, entry.prefilled)
