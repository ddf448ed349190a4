"""Block manager and scheduler under random arrivals, departures, shared beginnings and tiny pools.

The pages are played: each place holds what computed it, so that a row that reads a wrong page shows.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from zerolayer_worker.engine.block_manager import BlockManager, prefix_keys
from zerolayer_worker.engine.fair_queue import QueueFullError
from zerolayer_worker.engine.scheduler import DecodeRow, PrefillChunk, Scheduler, StepPlan, Work

CHUNK, PAGE, ROWS, QUEUE = 8, 4, 3, 5
LONGEST = 40


@dataclass
class Request:
    """`tokens` are those of prompt and answer so far; `age` orders first admissions."""

    work: Work
    tokens: list[int]
    age: int | None = None
    answer: list[int] = field(default_factory=list)


def next_token(tokens: list[int]) -> int:
    return hash(tuple(tokens)) % 97


class PagingMachine(RuleBasedStateMachine):
    @initialize(spare=st.integers(0, 12))
    def begin(self, spare: int) -> None:
        self.blocks = BlockManager(pages=LONGEST // PAGE + spare, page=PAGE, chunk=CHUNK)
        self.scheduler = Scheduler(rows=ROWS, max_queue=QUEUE, blocks=self.blocks)
        self.places: dict[tuple[int, int], tuple[object, ...]] = {}
        self.requests: dict[str, Request] = {}
        self.count = 0
        self.admitted = 0
        self.idle_turns: dict[str, int] = {}

    @rule(
        begins=st.integers(0, 1),
        shared=st.integers(0, 30),
        prompt=st.integers(1, 30),
        answer=st.integers(1, 10),
        client=st.sampled_from("abc"),
        background=st.sampled_from([False, False, False, True]),
    )
    def arrive(
        self, begins: int, shared: int, prompt: int, answer: int, client: str, background: bool
    ) -> None:
        self.count += 1
        own = max(0, prompt - shared)
        tokens = [begins] * (prompt - own) + [100 + self.count] * own
        keys = () if background else prefix_keys(b"", tokens, CHUNK)
        work = Work(str(self.count), prompt, answer, client=client, keys=keys, background=background)
        try:
            self.scheduler.add(work)
        except QueueFullError:
            assert len(self.requests) >= ROWS
        else:
            self.requests[work.request_id] = Request(work, tokens)

    @rule(times=st.integers(1, 6))
    def step(self, times: int) -> None:
        for _ in range(times):
            self.run(self.scheduler.schedule())

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.requests)))
        assert self.scheduler.remove(name)
        self.forget(name)

    def run(self, plan: StepPlan) -> None:
        oldest = self.oldest()
        for name in plan.preempted:
            assert name != oldest
            if self.requests[name].work.background:
                self.forget(name)
        for admission in plan.admitted:
            request = self.requests[admission.request_id]
            assert admission.again == (request.age is not None)
            assert admission.cached % CHUNK == 0
            if request.age is None and not request.work.background:
                self.admitted += 1
                request.age = self.admitted
        self.compute(plan)
        if (oldest := self.oldest()) is not None:
            busy = {row.request_id for row in plan.decode} | {plan.prefill.request_id if plan.prefill else ""}
            self.idle_turns = {oldest: 0 if oldest in busy else self.idle_turns.get(oldest, 0) + 1}
            assert self.idle_turns[oldest] <= ROWS
        for name in self.chosen(plan):
            request = self.requests[name]
            request.answer.append(next_token(request.tokens))
            request.tokens.append(request.answer[-1])
            assert len(request.answer) <= request.work.answer_tokens
            if len(request.answer) == request.work.answer_tokens:
                assert self.scheduler.remove(name)
                self.forget(name)

    def chosen(self, plan: StepPlan) -> list[str]:
        names = [row.request_id for row in plan.decode if row.last]
        return [*names, plan.prefill.request_id] if plan.prefill and plan.prefill.last else names

    def compute(self, plan: StepPlan) -> None:
        """All rows write before any reads, as in every layer."""
        assert len(plan.decode) <= ROWS
        for row in plan.decode:
            request = self.requests[row.request_id]
            assert row.position >= request.work.prompt_tokens
            assert row.last == (row.position == len(request.tokens) - 1)
            self.write(row, row.position)
        if (chunk := plan.prefill) is not None:
            assert chunk.start % CHUNK == 0
            assert chunk.count == min(CHUNK, self.requests[chunk.request_id].work.prompt_tokens - chunk.start)
            for position in range(chunk.start, chunk.start + chunk.count):
                self.write(chunk, position)
            self.read(chunk, chunk.start + chunk.count)
        for row in plan.decode:
            self.read(row, row.position + 1)

    def content(self, name: str, position: int) -> tuple[object, ...]:
        request = self.requests[name]
        return (position < request.work.prompt_tokens, *request.tokens[: position + 1])

    def write(self, part: PrefillChunk | DecodeRow, position: int) -> None:
        page = part.table[position // PAGE]
        self.places[page, position % PAGE] = self.content(part.request_id, position)

    def read(self, part: PrefillChunk | DecodeRow, length: int) -> None:
        for position in range(length):
            found = self.places[part.table[position // PAGE], position % PAGE]
            assert found == self.content(part.request_id, position)

    def oldest(self) -> str | None:
        ages = {n: r.age for n, r in self.requests.items() if r.age is not None}
        return min(ages, key=lambda name: ages[name] or 0, default=None)

    def forget(self, name: str) -> None:
        del self.requests[name]
        self.idle_turns.pop(name, None)

    @invariant()
    def pages_are_held_as_often_as_they_are_in_tables(self) -> None:
        if not hasattr(self, "blocks"):
            return
        held = [0] * self.blocks.pages
        for entry in self.scheduler._running.values():
            assert len(set(entry.table)) == len(entry.table)
            for page in entry.table:
                held[page] += 1
        assert held == self.blocks._holders
        assert self.blocks.used == sum(count > 0 for count in held)
        cached = [page for key in self.blocks._cached for page in self.blocks._chunks[key]]
        assert sorted(cached + self.blocks._free + [p for p, n in enumerate(held) if n]) == [
            *range(self.blocks.pages)
        ]
        assert self.blocks.cached == len(cached)

    @invariant()
    def counts_agree(self) -> None:
        if hasattr(self, "scheduler"):
            assert self.scheduler.running + self.scheduler.waiting == len(self.requests)
            assert self.scheduler.running <= ROWS

    def teardown(self) -> None:
        """Everything ends, and nothing is left."""
        if not hasattr(self, "scheduler"):
            return
        for _ in range(3000):
            if self.scheduler.empty:
                break
            self.run(self.scheduler.schedule())
        assert not self.requests
        assert self.blocks.used == 0
        assert not self.scheduler._queue._clients
        assert self.blocks.allocate(self.blocks.pages) is not None


TestPagingMachine = PagingMachine.TestCase
TestPagingMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
