"""Every write of an update is visited before and after, and none twice."""

from typing import Any

from zerolayer_dev.testing.fatal_proxy import Call, Moment
from zerolayer_dev.testing.fault_points import EveryCall, NoCall

SERVICES = "/api/v1/namespaces/test/services/p?fieldManager=operator"
STATUS = "/apis/zerolayer.dev/v1alpha1/namespaces/test/zerolayerpools/p/status"
EVENTS = "/api/v1/namespaces/test/events"


def armed() -> EveryCall:
    points = EveryCall()
    points.armed = True
    return points


def write(path: str = SERVICES, method: str = "PATCH", **body: Any) -> Call:
    return Call(method, path, body, 200)


def lives(points: EveryCall, *writes: Call) -> list[str]:
    """What an operator that makes these writes dies of, life by life, until it lives on."""
    died: list[str] = []
    while True:
        for number, call in enumerate(writes):
            for moment in Moment:
                if points.is_fatal(call, moment):
                    died.append(f"{moment} {number}")
                    break
            else:
                continue
            break
        else:
            return died


def test_each_write_is_died_of_before_and_after_in_order() -> None:
    points = armed()

    assert lives(points, write(a=1), write(a=2)) == ["before 0", "after 0", "before 1", "after 1"]
    assert (points.kills, points.points) == (4, {"PATCH services": 2})
    assert lives(points, write(a=1), write(a=2)) == []


def test_times_make_no_other_write_and_another_step_does() -> None:
    points = armed()
    lives(points, write(since="2026-01-01T00:00:00Z"))
    assert lives(points, write(since="2026-01-01T00:00:09Z")) == []

    soaking = {"update": {"step": "Soak", "toRevision": "b"}}
    assert points.is_fatal(write(STATUS, status=soaking), Moment.AFTER)
    assert lives(points, write(since="2026-01-01T00:00:09Z")) == ["before 0", "after 0"]
    assert points.points == {"PATCH services": 2, "PATCH zerolayerpools/status": 1}


def test_events_are_told_apart_by_name() -> None:
    points = armed()
    first = write(EVENTS, method="POST", metadata={"name": "p.1"}, message="25% of the requests")
    again = write(EVENTS, method="POST", metadata={"name": "p.1"}, message="26% of the requests")
    assert lives(points, first) == ["before 0", "after 0"]
    assert lives(points, again) == []


def test_nothing_is_fatal_until_it_is_armed_nor_are_reads_ever() -> None:
    assert lives(EveryCall(), write()) == []
    assert lives(armed(), Call("GET", SERVICES)) == []
    never = NoCall()
    never.armed = True
    assert lives(never, write()) == []


def test_leases_and_watches_do_not_count() -> None:
    assert Call("PUT", "/apis/coordination.k8s.io/v1/namespaces/test/leases/operator").counts is False
    assert Call("GET", "/api/v1/pods?watch=true").counts is False
    assert write().counts
