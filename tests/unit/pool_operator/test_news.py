"""Which events about pools are worth a look."""

from copy import deepcopy
from typing import Any

import pytest

from zerolayer_operator.news import ChildNews, News
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


META = {"uid": "u", "labels": {"a": "b"}, "annotations": {}, "resourceVersion": "1", "managedFields": [1]}
HPA = {
    "kind": "HorizontalPodAutoscaler",
    "metadata": META,
    "spec": {"maxReplicas": 3},
    "status": {
        "desiredReplicas": 1,
        "currentMetrics": [{"external": {"current": {"averageValue": "55"}}}],
        "conditions": [
            {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"},
            {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound", "message": "1"},
        ],
    },
}
DEPLOYMENT = {
    "kind": "Deployment",
    "metadata": META | {"generation": 1},
    "spec": {"replicas": 1},
    "status": {
        "observedGeneration": 1,
        "replicas": 1,
        "readyReplicas": 1,
        "updatedReplicas": 1,
        "availableReplicas": 1,
        "conditions": [
            {
                "type": "Progressing",
                "status": "True",
                "reason": "NewReplicaSetAvailable",
                "lastUpdateTime": "t",
            }
        ],
    },
}
WORKER = {
    "kind": "Pod",
    "metadata": META,
    "spec": {"nodeName": "n"},
    "status": {"podIP": "10.0.0.1", "containerStatuses": [{"ready": True}]},
}
BUDGET = {
    "kind": "PodDisruptionBudget",
    "metadata": META,
    "spec": {"maxUnavailable": 1},
    "status": {"disruptionsAllowed": 1},
}


@pytest.mark.parametrize(
    ("body", "path", "worth"),
    [
        (HPA, ("metadata", "resourceVersion"), False),
        (HPA, ("metadata", "managedFields"), False),
        (HPA, ("metadata", "labels"), True),
        (HPA, ("metadata", "annotations"), True),
        (HPA, ("metadata", "uid"), True),
        (HPA, ("metadata", "deletionTimestamp"), True),
        (HPA, ("spec", "maxReplicas"), True),
        (HPA, ("status", "desiredReplicas"), False),
        (HPA, ("status", "currentMetrics"), False),
        (HPA, ("status", "conditions", 0, "reason"), False),
        (HPA, ("status", "conditions", 1, "message"), False),
        (HPA, ("status", "conditions", 1, "status"), True),
        (HPA, ("status", "conditions", 1, "reason"), True),
        (DEPLOYMENT, ("metadata", "generation"), True),
        (DEPLOYMENT, ("spec", "replicas"), True),
        (DEPLOYMENT, ("status", "observedGeneration"), True),
        (DEPLOYMENT, ("status", "replicas"), True),
        (DEPLOYMENT, ("status", "readyReplicas"), True),
        (DEPLOYMENT, ("status", "updatedReplicas"), False),
        (DEPLOYMENT, ("status", "availableReplicas"), False),
        (DEPLOYMENT, ("status", "conditions", 0, "lastUpdateTime"), False),
        (DEPLOYMENT, ("status", "conditions", 0, "reason"), True),
        (DEPLOYMENT, ("status", "conditions", 0, "message"), True),
        (WORKER, ("metadata", "annotations"), False),
        (WORKER, ("metadata", "labels"), True),
        (WORKER, ("metadata", "deletionTimestamp"), True),
        (WORKER, ("status", "podIP"), True),
        (WORKER, ("status", "containerStatuses", 0, "ready"), True),
        (BUDGET, ("spec", "maxUnavailable"), True),
        (BUDGET, ("status", "disruptionsAllowed"), False),
    ],
)
def test_of_a_child_that_is_news_which_decisions_depend_on(
    body: dict[str, Any], path: tuple[Any, ...], worth: bool
) -> None:
    news, changed = ChildNews(), deepcopy(body)
    *way, last = path
    place: Any = changed
    for step in way:
        place = place[step]
    place[last] = "another"
    assert news.holds("ADDED", body)

    assert news.holds("MODIFIED", changed) is worth


def test_a_childs_beginning_and_end_are_news_and_a_watch_that_begins_anew_is_none() -> None:
    news = ChildNews()

    seen = [news.holds(change, HPA) for change in (None, None, "DELETED", "ADDED", "MODIFIED")]

    assert seen == [True, False, True, True, False]
