"""Decides which sequences run in the next step. Knows numbers of tokens, rows and pages, no tensors."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from zerolayer_worker.engine.block_manager import BlockManager
from zerolayer_worker.engine.fair_queue import FairQueue


@dataclass(frozen=True, slots=True)
class PrefillChunk:
    """Tokens `start … start + count - 1` of one sequence's prompt; `last` if its first token follows.

    `table` lists the sequence's pages; it may grow in later steps and is not to be changed.
    """

    request_id: str
    start: int
    count: int
    last: bool
    table: Sequence[int]


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """The token at `position` of one sequence; `last` if the next one is to be chosen, not known already."""

    request_id: str
    position: int
    last: bool
    table: Sequence[int]


@dataclass(frozen=True, slots=True)
class Admission:
    """A sequence that begins to run, `again` if it was preempted; `cached` tokens need not be computed."""

    request_id: str
    cached: int
    again: bool = False


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What one step computes: at most one prompt chunk, and decode rows.

    Attributes:
        admitted: sequences that begin to run with it.
        preempted: sequences that had to give their pages up before it; those in the background are gone.
    """

    prefill: PrefillChunk | None
    decode: tuple[DecodeRow, ...]
    admitted: tuple[Admission, ...] = ()
    preempted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """What a sequence asks of the scheduler.

    Attributes:
        prompt_tokens: length of the prompt.
        answer_tokens: longest answer.
        client: whose it is.
        keys: names of the prompt's whole chunks; none where it shares nothing with others.
        background: it runs only where no other wants its row or its pages.
    """

    request_id: str
    prompt_tokens: int
    answer_tokens: int = 1
    client: str = ""
    keys: Sequence[bytes] = ()
    background: bool = False


@dataclass(slots=True)
class _Entry:
    """`computed` tokens have their keys and values in `table`; `known` are those of prompt and answer."""

    work: Work
    known: int
    computed: int = 0
    table: list[int] = field(default_factory=list[int])
    admitted: bool = False

    @property
    def prefilled(self) -> bool:
        return self.computed >= self.work.prompt_tokens


class Scheduler:
    """Fair among clients, first come, first served within one; prompts in chunks that take turns.

    A prompt's chunks always begin at multiples of the chunk size, whatever else runs, as the bits of the
    result depend on where it is cut. Where no page is left, the sequence that was admitted last gives its
    pages up and waits in front of all others; its prompt is then computed again on the same grid, and the
    tokens of its answer run through decode rows again, so it ends as if nothing had happened. The oldest
    sequence never gives anything up, so it always comes to its end.
    """

    def __init__(self, *, rows: int, max_queue: int, blocks: BlockManager) -> None:
        if rows < 1 or max_queue < 0:
            raise ValueError("rows must be at least 1, max_queue at least 0")
        self._rows = rows
        self._blocks = blocks
        self._queue = FairQueue(max_queue)
        self._waiting: dict[str, _Entry] = {}
        self._returning: deque[_Entry] = deque()
        self._background: list[_Entry] = []
        # In the order of their first admission, but those in the background behind all others.
        self._running: dict[str, _Entry] = {}
        self._prompts: deque[str] = deque()
        self._preempted: list[str] = []

    @property
    def slots(self) -> int:
        """Sequences that can run at once."""
        return self._rows

    @property
    def blocks(self) -> BlockManager:
        """The pages."""
        return self._blocks

    @property
    def waiting(self) -> int:
        """Sequences that do not run."""
        return len(self._waiting) + len(self._returning) + len(self._background)

    @property
    def running(self) -> int:
        """Sequences that hold pages and have a row of each step."""
        return len(self._running)

    @property
    def spare(self) -> int:
        """Rows that are left when all that wait have theirs."""
        return max(0, self._rows - self.waiting - self.running)

    @property
    def _free_rows(self) -> int:
        """Rows that nobody has or had: negative where more were preempted than there are rows left."""
        return self._rows - self.running - len(self._returning)

    @property
    def prompting(self) -> bool:
        """Whether there are prompts that are not computed to their ends."""
        return bool(self.waiting or self._prompts)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.waiting and not self._running

    def add(self, work: Work) -> None:
        """Queues a sequence.

        Raises:
            QueueFullError: the queue, or the client's share of it, is full; nothing has changed.
            ValueError: the id is in use, the prompt empty, or the sequence too long for all pages together.
        """
        if work.prompt_tokens < 1:
            raise ValueError("a prompt needs at least one token")
        if work.request_id in self._waiting or self._find(work.request_id) is not None:
            raise ValueError(f"request id {work.request_id!r} is in use")
        if self._blocks.pages_for(work.prompt_tokens + work.answer_tokens - 1) > self._blocks.pages:
            raise ValueError(f"{work.prompt_tokens} + {work.answer_tokens} tokens do not fit into the pages")
        entry = _Entry(work, known=work.prompt_tokens)
        if work.background:
            self._background.append(entry)
            return
        self._queue.push(work.request_id, work.client, free=self._free_rows)
        self._waiting[work.request_id] = entry

    def check_room(self, client: str) -> None:
        """Says whether a sequence of a client would find a place.

        Raises:
            QueueFullError: as `add`.
        """
        self._queue.check(client, free=self._free_rows)

    def remove(self, request_id: str) -> bool:
        """Forgets a sequence that finished or was given up and frees its pages; False if it was not there."""
        if self._waiting.pop(request_id, None) is not None:
            return self._queue.drop(request_id)
        entry = self._find(request_id)
        if entry is None:
            return False
        if request_id in self._running:
            self._stop(entry)
        elif entry.work.background:
            self._background.remove(entry)
        else:
            self._returning.remove(entry)
        if not entry.work.background:
            self._queue.close(entry.work.client)
        return True

    def schedule(self) -> StepPlan:
        """Says what to run, and counts it as done: what it plans has to run before the next call."""
        self._preempted = []
        growing = [entry for entry in self._running.values() if entry.prefilled]
        for entry in growing:
            self._grow(entry, entry.computed + 1)
        admitted = tuple(self._admit())
        chunk = self._next_chunk()
        decode = tuple(self._decode([each for each in growing if each.work.request_id in self._running]))
        return StepPlan(chunk, decode, admitted, tuple(self._preempted))

    def _find(self, request_id: str) -> _Entry | None:
        """A sequence that was admitted once, or is in the background."""
        others = (e for e in (*self._returning, *self._background) if e.work.request_id == request_id)
        return self._running.get(request_id) or next(others, None)

    def _grow(self, entry: _Entry, tokens: int) -> bool:
        """Sees to pages for so many tokens, at the cost of younger ones; False if it cost the entry's."""
        while entry.work.request_id in self._running:
            if self._extend(entry, tokens):
                return True
            self._preempt(next(reversed(self._running.values())))
        return False

    def _preempt(self, entry: _Entry) -> None:
        self._stop(entry)
        self._preempted.append(entry.work.request_id)
        if not entry.work.background:
            self._returning.appendleft(entry)

    def _stop(self, entry: _Entry) -> None:
        """Its table is replaced, not emptied: a step that runs may still read it."""
        del self._running[entry.work.request_id]
        if entry.work.request_id in self._prompts:
            self._prompts.remove(entry.work.request_id)
        self._blocks.release(entry.table)
        entry.table, entry.computed = [], 0

    def _admit(self) -> Iterator[Admission]:
        """Fills free rows, those that were preempted first and what runs in the background last."""
        while (entry := self._next_in_line()) and self._make_room(entry):
            work = entry.work
            if self._returning and entry is self._returning[0]:
                self._returning.popleft()
            else:
                self._queue.take(work.request_id)
                del self._waiting[work.request_id]
            yield self._start(entry)
        for entry in self._background:
            if not self._returning and not self._waiting and self._fits(entry):
                yield self._start(entry)
            else:
                self._preempted.append(entry.work.request_id)
        self._background.clear()

    def _next_in_line(self) -> _Entry | None:
        if self._returning:
            return self._returning[0]
        first = self._queue.peek()
        return None if first is None else self._waiting[first]

    def _make_room(self, entry: _Entry) -> bool:
        """Whether a sequence may begin, if need be at the cost of one in the background."""
        last = next(reversed(self._running.values()), None)
        if not self._fits(entry) and last is not None and last.work.background:
            self._preempt(last)
        return self._fits(entry)

    def _fits(self, entry: _Entry) -> bool:
        """Whether there is a row, and pages for all that is known of it.

        What the prompts that run still need is spoken for: else they would be preempted half-way.
        """
        spoken_for = sum(
            self._blocks.pages_for(each.work.prompt_tokens) - len(each.table)
            for each in self._running.values()
            if not each.prefilled
        )
        hits = self._hits(entry)
        needed = self._blocks.pages_for(entry.known) - len(hits) + self._blocks.idle(hits)
        return self.running < self._rows and needed + spoken_for <= self._blocks.available

    def _hits(self, entry: _Entry) -> list[int]:
        """Pages with the prompt's beginning. Its last chunk is always computed: its final state is needed."""
        whole = (entry.work.prompt_tokens - 1) // self._blocks.chunk
        return self._blocks.find(entry.work.keys[:whole])

    def _start(self, entry: _Entry) -> Admission:
        work, again = entry.work, entry.admitted
        hits = self._hits(entry)
        self._blocks.share(hits)
        entry.table, entry.admitted = hits, True
        entry.computed = len(hits) // self._blocks.pages_for(self._blocks.chunk) * self._blocks.chunk
        if not again and not work.background:
            self._queue.charge(work.client, prompt=work.prompt_tokens - entry.computed)
        last = next(reversed(self._running.values()), None)
        self._running[work.request_id] = entry
        if last is not None and last.work.background:
            self._running[last.work.request_id] = self._running.pop(last.work.request_id)
        self._prompts.append(work.request_id)
        return Admission(work.request_id, entry.computed, again)

    def _next_chunk(self) -> PrefillChunk | None:
        """The next prompt's turn; one whose pages it costs has none."""
        while self._prompts:
            entry = self._running[self._prompts[0]]
            work, start = entry.work, entry.computed
            end = min(start + self._blocks.chunk, work.prompt_tokens)
            if not self._grow(entry, end):
                continue
            self._prompts.popleft()
            entry.computed = end
            if not entry.prefilled:
                self._prompts.append(work.request_id)
            self._publish(entry, start)
            last = entry.prefilled and entry.known == work.prompt_tokens
            if last:
                self._learn(entry)
            return PrefillChunk(work.request_id, start, end - start, last, entry.table)
        return None

    def _publish(self, entry: _Entry, start: int) -> None:
        chunk = start // self._blocks.chunk
        if chunk < len(entry.work.keys):
            first, count = self._blocks.pages_for(start), self._blocks.pages_for(self._blocks.chunk)
            self._blocks.publish(entry.work.keys[chunk], entry.table[first : first + count])

    def _decode(self, entries: list[_Entry]) -> Iterator[DecodeRow]:
        """A row for each, and rows that are left for known tokens of those that were preempted."""
        spare = self._rows - len(entries)
        for entry in entries:
            count = min(entry.known - entry.computed, 1 + spare)
            spare -= count - 1
            for position in range(entry.computed, entry.computed + count):
                if not self._extend(entry, position + 1):
                    break
                last = position == entry.known - 1
                entry.computed = position + 1
                if last:
                    self._learn(entry)
                yield DecodeRow(entry.work.request_id, position, last, entry.table)

    def _extend(self, entry: _Entry, tokens: int) -> bool:
        """Sees to pages for so many tokens, if there are any."""
        missing = max(0, self._blocks.pages_for(tokens) - len(entry.table))
        if missing <= self._blocks.available:
            entry.table += self._blocks.allocate(missing)
            return True
        return False

    def _learn(self, entry: _Entry) -> None:
        """The step chooses the sequence's next token."""
        entry.known += 1
        if not entry.work.background:
            self._queue.charge(entry.work.client, answer=1)
