"""Which events about pools are worth a look."""

from copy import deepcopy
from typing import Any

import pytest

from zerolayer_operator.news import News
from zerolayer_operator.workqueue import PoolKey

KEY = PoolKey("n", "p")
POOL = {
    "metadata": {"uid": "u", "generation": 1, "labels": {"a": "b"}, "resourceVersion": "1"},
    "spec": {},
    "status": {
        "phase": "Degraded",
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "ChildRefused", "message": "request 1 is denied"}
        ],
    },
}


def edited(*path: Any, value: object) -> dict[str, Any]:
    body = deepcopy(POOL)
    *way, last = path
    place: Any = body
    for step in way:
        place = place[step]
    place[last] = value
    return body


@pytest.mark.parametrize(
    ("body", "worth"),
    [
        (POOL, False),
        (edited("metadata", "resourceVersion", value="2"), False),
        (edited("status", "conditions", 0, "message", value="request 2 is denied"), False),
        (edited("status", "conditions", 0, "reason", value="Other"), True),
        (edited("status", "conditions", 0, "status", value="True"), True),
        (edited("status", "phase", value="Ready"), True),
        (edited("metadata", "generation", value=2), True),
        (edited("metadata", "labels", value={}), True),
        (edited("metadata", "uid", value="v"), True),
        (edited("metadata", "deletionTimestamp", value="now"), True),
    ],
)
def test_other_words_are_no_news(body: dict[str, Any], worth: bool) -> None:
    news = News()
    news.holds(KEY, "ADDED", POOL)

    assert news.holds(KEY, "MODIFIED", body) is worth


def test_what_a_watch_begins_with_and_deletions_are_always_worth_a_look() -> None:
    news = News()

    assert [news.holds(KEY, change, POOL) for change in (None, None, "DELETED", "ADDED")] == [True] * 4


def test_pools_are_told_apart() -> None:
    news = News()

    assert [news.holds(PoolKey("n", name), "ADDED", POOL) for name in "ab"] == [True, True]
