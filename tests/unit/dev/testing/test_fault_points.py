"""Every call of an update is visited before and after, and none twice."""

from typing import Any

from zerolayer_dev.testing.fatal_proxy import Call, Moment
from zerolayer_dev.testing.fault_points import EveryCall, EveryWrite, NoCall

SERVICES = "/api/v1/namespaces/test/services/p?fieldManager=operator"
STATUS = "/apis/zerolayer.dev/v1alpha1/namespaces/test/zerolayerpools/p/status"
EVENTS = "/api/v1/namespaces/test/events"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/test/leases/operator"
PODS = "/api/v1/namespaces/test/pods"


def armed(kind: type[EveryCall] = EveryCall) -> EveryCall:
    points = kind()
    points.armed = True
    return points


def write(path: str = SERVICES, method: str = "PATCH", **body: Any) -> Call:
    return Call(method, path, body, 200)


def read(path: str) -> Call:
    return Call("GET", path, status=200)


def lives(points: EveryCall, *calls: Call) -> list[str]:
    """What an operator that makes these calls dies of, life by life, until it lives on."""
    died: list[str] = []
    while True:
        for number, call in enumerate(calls):
            for moment in Moment:
                if points.is_fatal(call, moment):
                    died.append(f"{moment} {number}")
                    break
            else:
                continue
            break
        else:
            return died


def test_each_call_is_died_of_before_and_after_in_order() -> None:
    points = armed()

    assert lives(points, read(PODS), write(a=1), write(a=2)) == [
        *("before 0", "after 0"),
        *("before 1", "after 1"),
        *("before 2", "after 2"),
    ]
    assert (points.writes, points.reads) == (4, 2)
    assert lives(points, write(a=1), read(PODS), write(a=2)) == []


def test_an_answer_to_a_dead_operator_is_not_died_of_but_tells_the_step() -> None:
    points = armed()
    soaking = write(STATUS, status={"update": {"step": "Soak", "toRevision": "b"}})
    lives(points, read(PODS))

    assert not points.is_fatal(soaking, Moment.AFTER, alive=False)
    assert (points.writes, points.reads) == (0, 2)
    assert lives(points, read(PODS)) == ["before 0", "after 0"]


def test_times_make_no_other_write_and_another_step_does() -> None:
    points = armed()
    lives(points, write(since="2026-01-01T00:00:00Z"))
    assert lives(points, write(since="2026-01-01T00:00:09Z")) == []

    soaking = {"update": {"step": "Soak", "toRevision": "b"}}
    assert points.is_fatal(write(STATUS, status=soaking), Moment.AFTER)
    assert lives(points, write(since="2026-01-01T00:00:09Z")) == ["before 0", "after 0"]
    assert points.writes == 5


def test_events_are_told_apart_by_name() -> None:
    points = armed()
    first = write(EVENTS, method="POST", metadata={"name": "p.1"}, message="25% of the requests")
    again = write(EVENTS, method="POST", metadata={"name": "p.1"}, message="26% of the requests")
    assert lives(points, first) == ["before 0", "after 0"]
    assert lives(points, again) == []


def test_reads_are_told_apart_by_what_they_ask_for_but_not_by_since_when() -> None:
    points = armed()
    watch = f"{PODS}?labelSelector=a&resourceVersion={{}}&timeoutSeconds=300&watch=true"

    assert lives(points, read(watch.format(1))) == ["before 0", "after 0"]
    assert lives(points, read(watch.format(2))) == []
    assert lives(points, read(f"{PODS}?labelSelector=a"), read(f"{PODS}?labelSelector=b")) == [
        *("before 0", "after 0"),
        *("before 1", "after 1"),
    ]


def test_renewals_of_a_lease_are_the_same_write() -> None:
    points = armed()
    first = {"metadata": {"resourceVersion": "7"}, "spec": {"renewTime": "2026-01-01T00:00:00.000001+00:00"}}
    later = {"metadata": {"resourceVersion": "8"}, "spec": {"renewTime": "2026-01-01T00:00:05+00:00"}}

    assert lives(points, write(LEASE, method="PUT", **first)) == ["before 0", "after 0"]
    assert lives(points, write(LEASE, method="PUT", **later)) == []


def test_of_writes_alone_status_figures_make_no_other_one() -> None:
    points = armed(EveryWrite)

    def soaking(step: str, samples: int, verdict: str = "Undecided") -> Call:
        update = {"step": step, "toRevision": "b", "verdict": verdict, "samples": samples}
        condition = {"type": "Ready", "status": "True", "reason": "Ready", "message": f"{samples} samples"}
        return write(STATUS, status={"update": update, "conditions": [condition], "history": []})

    assert lives(points, read(PODS), write(LEASE, method="PUT")) == []
    # Once in the step before it, and once in the one that it begins.
    assert lives(points, soaking("Soak", 1)) == 2 * ["before 0", "after 0"]
    assert lives(points, soaking("Soak", 2)) == []
    assert lives(points, soaking("Soak", 3, "Pass")) == ["before 0", "after 0"]
    assert lives(points, soaking("Soak", 4, "Pass")) == []
    assert points.reads == 0


def test_nothing_is_fatal_until_it_is_armed() -> None:
    assert lives(EveryCall(), write()) == []
    never = NoCall()
    never.armed = True
    assert lives(never, write()) == []


def test_leases_and_watches_are_told_from_other_calls() -> None:
    assert [call.renews for call in (Call("PUT", LEASE), write(), read(PODS))] == [True, False, False]
    assert [call.watches for call in (read(f"{PODS}?watch=true"), read(PODS))] == [True, False]
