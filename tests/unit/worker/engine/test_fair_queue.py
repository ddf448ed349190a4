from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_worker.engine import fair_queue
from zerolayer_worker.engine.fair_queue import ANSWER_WEIGHT, PROMPT_WEIGHT, FairQueue, QueueFullError


def filled(places: int = 100, **requests: int) -> FairQueue:
    queue = FairQueue(places)
    for client, count in requests.items():
        for number in range(count):
            queue.push(f"{client}{number}", client, free=0)
    return queue


def served(queue: FairQueue, prompt: int = 0, answer: int = 0) -> str:
    """Runs the next request from begin to end."""
    request_id = queue.peek()
    assert request_id is not None
    queue.take(request_id)
    queue.charge(request_id[0], prompt=prompt, answer=answer)
    queue.close(request_id[0])
    return request_id


def test_one_client_is_served_in_the_order_of_arrival() -> None:
    queue = filled(a=3)
    assert [served(queue, 5) for _ in range(3)] == ["a0", "a1", "a2"]
    assert queue.peek() is None


def test_who_had_less_goes_next() -> None:
    queue = filled(a=3, b=3)
    assert served(queue, answer=10) == "a0"
    assert [served(queue, answer=5) for _ in range(4)] == ["b0", "b1", "a1", "b2"]


def test_a_token_of_an_answer_counts_twice() -> None:
    queue = filled(a=2, b=2)
    assert served(queue, answer=10) == "a0"
    assert [served(queue, prompt=10) for _ in range(3)] == ["b0", "b1", "a1"]


def test_a_pause_is_no_credit() -> None:
    """Without the lift the late client would run its three requests before anybody else."""
    queue = filled(a=1, b=9)
    assert served(queue, 1) == "a0"
    for _ in range(5):
        served(queue, 10)
    for number in range(3):
        queue.push(f"a{number}", "a", free=10)
    assert [served(queue, 10)[0] for _ in range(4)] == ["b", "a", "b", "a"]


def test_leaving_and_coming_back_is_no_way_to_lose_a_debt() -> None:
    queue = filled(a=1, b=9)
    assert served(queue, 99) == "a0"
    queue.push("a1", "a", free=10)
    assert [served(queue, 20)[0] for _ in range(6)] == ["b", "b", "b", "b", "b", "a"]


def test_counters_of_those_who_left_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "REMEMBERED", 10)
    queue = FairQueue(5)
    for number in range(1000):
        queue.push(str(number), str(number), free=1)
        queue.take(str(number))
        queue.close(str(number))
    assert (len(queue._left), len(queue._clients)) == (10, 0)


def test_a_refusal_does_not_pile_up_either() -> None:
    queue = filled(4, a=4)
    for number in range(100):
        with pytest.raises(QueueFullError):
            queue.push("x", f"b{number}", free=0)
    assert len(queue._refused) <= 4


def test_one_client_alone_may_fill_the_queue() -> None:
    queue = filled(4, a=4)
    with pytest.raises(QueueFullError):
        queue.push("a4", "a", free=0)
    queue.push("a4", "a", free=1)


def test_a_full_queue_opens_up_to_who_was_refused() -> None:
    queue = filled(4, a=4)
    with pytest.raises(QueueFullError):
        queue.push("b0", "b", free=0)
    served(queue)
    with pytest.raises(QueueFullError):
        queue.push("a4", "a", free=0)
    queue.push("b0", "b", free=0)
    assert len(queue) == 4


def test_who_was_refused_and_never_came_back_is_forgotten() -> None:
    queue = filled(4, a=4)
    with pytest.raises(QueueFullError):
        queue.push("b0", "b", free=0)
    for number in range(4, 12):
        served(queue)
        queue.push(f"a{number}", "a", free=2)
    assert not queue._refused
    queue.push("a12", "a", free=2)


def test_dropping_works_once() -> None:
    queue = filled(a=2)
    assert queue.drop("a0")
    assert not queue.drop("a0")
    assert (queue.peek(), len(queue)) == ("a1", 1)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=40, max_size=40),
    rows=st.integers(1, 4),
)
def test_two_clients_that_always_wait_get_nearly_the_same(sizes: list[tuple[int, int]], rows: int) -> None:
    """Theorem 4.4 of the paper: service differs by at most 2 max(w_p L, w_q M), M tokens being in a batch."""
    queue = FairQueue(200)
    work: dict[str, tuple[int, int]] = {}
    for index, size in enumerate(sizes):
        for client in "ab":
            name = f"{client}{index}"
            work[name] = size if client == "a" else sizes[-1 - index]
            queue.push(name, client, free=0)
    service: Counter[str] = Counter()
    running: dict[str, int] = {}
    bound = 2 * max(PROMPT_WEIGHT * 50, ANSWER_WEIGHT * 100 * rows)
    while (first := queue.peek()) is not None:
        while len(running) < rows and (first := queue.peek()) is not None:
            queue.take(first)
            running[first] = work[first][1]
            queue.charge(first[0], prompt=work[first][0])
            service[first[0]] += PROMPT_WEIGHT * work[first][0]
        for name in list(running):
            queue.charge(name[0], answer=1)
            service[name[0]] += ANSWER_WEIGHT
            running[name] -= 1
            if not running[name]:
                del running[name]
                queue.close(name[0])
        if {name[0] for name in queue._of} == {"a", "b"}:
            assert abs(service["a"] - service["b"]) <= bound
