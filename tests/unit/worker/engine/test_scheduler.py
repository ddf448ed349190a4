import pytest

from zerolayer_worker.engine.block_manager import BlockManager, prefix_keys
from zerolayer_worker.engine.fair_queue import QueueFullError
from zerolayer_worker.engine.scheduler import Admission, DecodeRow, Scheduler, StepPlan, Work

CHUNK, PAGE = 10, 5


def scheduler(rows: int = 2, max_queue: int = 2, pages: int = 1000) -> Scheduler:
    return Scheduler(rows=rows, max_queue=max_queue, blocks=BlockManager(pages=pages, page=PAGE, chunk=CHUNK))


def work(name: str, prompt: int = 1, answer: int = 100, client: str = "", shared: bool = False) -> Work:
    """Prompts that are shared begin the same, the others with nothing of anybody's."""
    keys = prefix_keys(b"shared" if shared else name.encode(), range(prompt), CHUNK)
    return Work(name, prompt, answer, client=client, keys=keys)


def chunks(one: Scheduler, steps: int) -> list[tuple[str, int, int, bool]]:
    plans = [one.schedule().prefill for _ in range(steps)]
    return [(each.request_id, each.start, each.count, each.last) for each in plans if each]


def decoded(plan: StepPlan) -> list[tuple[str, int, bool]]:
    return [(row.request_id, row.position, row.last) for row in plan.decode]


def test_a_prompt_runs_in_chunks_and_then_decodes() -> None:
    one = scheduler()
    one.add(work("a", 25))
    assert chunks(one, 3) == [("a", 0, 10, False), ("a", 10, 10, False), ("a", 20, 5, True)]
    plan = one.schedule()
    assert plan.prefill is None
    assert plan.decode == (DecodeRow("a", 25, last=True, table=list(range(6))),)


def test_pages_come_as_they_are_needed() -> None:
    one = scheduler()
    one.add(work("a", 11))
    used: list[int] = []
    for _ in range(8):
        one.schedule()
        used.append(one.blocks.used)
    assert used == [2, 3, 3, 3, 3, 3, 4, 4]


def test_a_long_prompt_stalls_nobody() -> None:
    """The decoding sequence gets its token in every step, the short prompt its turn in the next one."""
    one = scheduler(rows=3)
    one.add(work("decoding"))
    one.schedule()
    one.add(work("long", 1000))
    one.schedule()
    one.add(work("short", 5))
    plans = [one.schedule() for _ in range(2)]
    assert {plan.prefill.request_id for plan in plans if plan.prefill} == {"long", "short"}
    assert [decoded(plan) for plan in plans] == [[("decoding", 2, True)], [("decoding", 3, True)]]


def test_chunks_start_on_one_grid_whatever_else_runs() -> None:
    one = scheduler(rows=3)
    for name, size in (("a", 31), ("b", 9), ("c", 20)):
        one.add(work(name, size))
    found = chunks(one, 8)
    assert all(start % 10 == 0 for _, start, _, _ in found)
    of_a = [(start, count) for name, start, count, _ in found if name == "a"]
    assert of_a == [(0, 10), (10, 10), (20, 10), (30, 1)]


def test_rows_are_given_in_the_order_of_arrival() -> None:
    one = scheduler(rows=1, max_queue=3)
    for name in "abc":
        one.add(work(name))
    served = []
    for _ in range(3):
        ((name, *_),) = chunks(one, 1)
        served.append(name)
        one.remove(name)
    assert served == ["a", "b", "c"]
    assert one.empty


def test_says_who_began_once() -> None:
    one = scheduler()
    for name in "abc":
        one.add(work(name, 25))
    assert [one.schedule().admitted for _ in range(2)] == [(Admission("a", 0), Admission("b", 0)), ()]
    one.remove("a")
    assert one.schedule().admitted == (Admission("c", 0),)


def test_the_queue_has_a_bound() -> None:
    one = scheduler(rows=1, max_queue=1)
    one.add(work("a"))
    one.add(work("b"))
    with pytest.raises(QueueFullError):
        one.add(work("c"))
    assert (one.running, one.waiting) == (0, 2)
    one.schedule()
    assert (one.running, one.waiting) == (1, 1)
    one.remove("a")
    one.add(work("c"))


def test_no_queue_still_serves_as_many_as_there_are_rows() -> None:
    one = scheduler(max_queue=0)
    one.add(work("a"))
    one.add(work("b"))
    with pytest.raises(QueueFullError):
        one.add(work("c"))


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_removing_works_at_any_time_and_twice(steps: int) -> None:
    one = scheduler(rows=1)
    one.add(work("a", 15))
    for _ in range(steps):
        one.schedule()
    assert one.remove("a")
    assert not one.remove("a")
    assert one.empty
    assert one.blocks.used == 0
    assert one.schedule() == StepPlan(None, ())


def test_refuses_what_makes_no_sense() -> None:
    one = scheduler(pages=4)
    one.add(work("a", answer=20))
    with pytest.raises(ValueError, match="'a' is in use"):
        one.add(work("a", answer=20))
    with pytest.raises(ValueError, match="at least one token"):
        one.add(work("b", 0))
    with pytest.raises(ValueError, match=r"11 \+ 11 tokens do not fit"):
        one.add(work("b", 11, 11))
    with pytest.raises(ValueError, match="rows must be"):
        scheduler(rows=0)


def test_a_prompt_that_begins_like_an_earlier_one_is_computed_from_there() -> None:
    one = scheduler()
    one.add(work("a", 25, shared=True))
    chunks(one, 3)
    one.remove("a")
    assert (one.blocks.used, one.blocks.cached) == (0, 4)
    one.add(work("b", 31, shared=True))
    plan = one.schedule()
    assert plan.admitted == (Admission("b", 20),)
    assert plan.prefill is not None
    assert (plan.prefill.start, list(plan.prefill.table[:4])) == (20, [0, 1, 2, 3])


@pytest.mark.parametrize(("prompt", "cached"), [(20, 10), (21, 20), (10, 0)])
def test_the_last_chunk_is_always_computed(prompt: int, cached: int) -> None:
    one = scheduler()
    for name in "ab":
        one.add(work(name, prompt, shared=True))
        admitted = one.schedule().admitted
        chunks(one, 3)
        one.remove(name)
    assert admitted == (Admission("b", cached),)


def test_what_an_answers_tokens_computed_is_not_shared() -> None:
    one = scheduler()
    one.add(work("a", 5, shared=True))
    for _ in range(20):
        one.schedule()
    one.remove("a")
    assert one.blocks.cached == 0


def test_a_prompt_waits_for_pages_that_running_prompts_still_need() -> None:
    one = scheduler(pages=6)
    one.add(work("a", 20, 1))
    one.add(work("b", 15, 1))
    assert one.schedule().admitted == (Admission("a", 0),)
    assert one.schedule().admitted == ()
    one.remove("a")
    assert one.schedule().admitted == (Admission("b", 0),)


def preempted() -> Scheduler:
    """Of two that need three pages each, in four, the younger had to go: both had 9 + 2 tokens."""
    one = scheduler(pages=4)
    one.add(work("old", 9, 6))
    one.add(work("young", 9, 5))
    assert [one.schedule().preempted for _ in range(3)] == [(), (), ("young",)]
    assert (one.running, one.waiting) == (1, 1)
    return one


def test_the_youngest_gives_its_pages_up_and_returns_before_others() -> None:
    one = preempted()
    one.add(work("late", 3, 1))
    assert [decoded(one.schedule()) for _ in range(2)] == [[("old", 11, True)], [("old", 12, True)]]
    one.remove("old")
    plan = one.schedule()
    assert plan.admitted == (Admission("young", 0, again=True), Admission("late", 0))


def test_known_tokens_run_again_in_the_rows_that_are_left() -> None:
    """Nothing is chosen for them: not after the prompt, and of the rows only after the newest."""
    one = preempted()
    one.remove("old")
    assert chunks(one, 1) == [("young", 0, 9, False)]
    assert decoded(one.schedule()) == [("young", 9, True)]
    assert decoded(one.schedule()) == [("young", 10, True)]


def test_background_work_gives_way_first() -> None:
    one = scheduler(rows=3, pages=4)
    one.add(Work("back", 6, 5, background=True))
    one.schedule()
    one.add(work("a", 10, 6))
    assert [one.schedule().preempted for _ in range(3)] == [(), ("back",), ()]
    assert not one.remove("back")
    assert (one.running, one.waiting, one.blocks.used) == (1, 0, 3)


def test_background_work_makes_room_for_what_waits() -> None:
    one = scheduler(pages=4)
    one.add(Work("back", 15, 1, background=True))
    one.schedule()
    one.add(work("a", 9, 1))
    plan = one.schedule()
    assert (plan.preempted, plan.admitted) == (("back",), (Admission("a", 0),))


def test_background_work_that_finds_no_room_is_gone() -> None:
    one = scheduler(rows=1)
    one.add(work("a"))
    one.add(Work("back", 1, 1, background=True))
    assert one.schedule().preempted == ("back",)
    assert not one.remove("back")
    assert (one.running, one.waiting) == (1, 0)


def test_clients_take_turns_by_what_they_had() -> None:
    one = scheduler(rows=1, max_queue=10)
    for number in range(3):
        one.add(work(f"a{number}", 8, client="a"))
    for number in range(3):
        one.add(work(f"b{number}", 4, client="b"))
    order = []
    while not one.empty:
        ((name, *_),) = chunks(one, 1)
        order.append(name)
        one.remove(name)
    assert order == ["a0", "b0", "b1", "a1", "b2", "a2"]
