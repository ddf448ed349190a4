"""What is seen of an update's golden set, and counted of what it found."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import REGISTRY

from zerolayer_dev.testing import golden
from zerolayer_dev.testing.observed import NOW, pool, spec
from zerolayer_operator.api.golden import read_report
from zerolayer_operator.api.kinds import CONFIG_MAP, JOB, NETWORK_POLICY, Kind
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.api.update_status import CheckStatus, Step, UpdateStatus
from zerolayer_operator.decide.wire import wire_time
from zerolayer_operator.knowledge_hits import KnowledgeHits
from zerolayer_operator.observe.golden import GoldenSets, golden_run
from zerolayer_operator.observe.kept import KeptLists
from zerolayer_operator.observe.state import ChildKey, ObservedGolden, ObservedPool
from zerolayer_operator.workqueue import PoolKey

SPEC = spec(update={"golden": {"configMap": {"name": "facts"}}})
RECORD = UpdateStatus(step=Step.SOAK, from_revision="blue", to_revision="green", started_at=wire_time(NOW))
NAME = "pool-green-golden"
SOURCE = SPEC.update.golden.config_map if SPEC.update.golden is not None else None
SET = {"kind": "ConfigMap", "metadata": {"name": "facts"}, "data": {"golden.jsonl": "{}"}}


class Objects:
    """Lists and gets objects as the API server would, and notes what it was asked for."""

    def __init__(self, *bodies: dict[str, Any]) -> None:
        self.bodies = bodies
        self.calls: list[str] = []

    async def list(self, kind: Kind, _: str, selector: str = "") -> list[dict[str, Any]]:
        self.calls.append(f"list {kind.plural}")
        key, _, value = selector.partition("=")
        return [body for body in self._of(kind) if body["metadata"].get("labels", {}).get(key) == value]

    async def get(self, kind: Kind, _: str, name: str) -> dict[str, Any] | None:
        self.calls.append(f"get {kind.plural} {name}")
        return next((body for body in self._of(kind) if body["metadata"]["name"] == name), None)

    def _of(self, kind: Kind) -> Any:
        return [body for body in self.bodies if body["kind"] == kind.kind]


def sets(api: Objects, *, policies: bool = True) -> GoldenSets:
    return GoldenSets(api, KeptLists(), policies)  # type: ignore[arg-type]


def run() -> str:
    assert SOURCE is not None
    return golden_run(RECORD, SOURCE)


async def observe(*bodies: dict[str, Any], record: UpdateStatus | None = RECORD) -> ObservedGolden:
    children = {ChildKey(body["kind"], body["metadata"]["name"]): body for body in bodies}
    found = await sets(Objects(*bodies)).observed("default", "pool", SPEC, record, children)
    assert found is not None
    return found


async def test_without_an_update_or_a_set_there_is_none() -> None:
    api = Objects(SET)
    assert await sets(api).observed("default", "pool", SPEC, None, {}) is None
    assert await sets(api).observed("default", "pool", spec(), RECORD, {}) is None
    assert await sets(api).observed("default", "pool", None, RECORD, {}) is None
    assert api.calls == []


@pytest.mark.parametrize(
    ("bodies", "step", "said"),
    [
        ((SET,), Step.SOAK, None),
        (({**SET, "data": {}, "binaryData": {"golden.jsonl": "e30="}},), Step.SOAK, None),
        ((), Step.SOAK, "names ConfigMap facts, which namespace default doesn't have"),
        ((), Step.PREPARE, "names ConfigMap facts"),
        (({**SET, "data": {"other": ""}},), Step.SOAK, "names key golden.jsonl, which ConfigMap facts"),
        ((), Step.RETAIN, None),
    ],
)
async def test_the_set_has_to_be_there(bodies: tuple[Any, ...], step: Step, said: str | None) -> None:
    found = await observe(*bodies, record=RECORD.model_copy(update={"step": step}))
    assert found.job is None
    if said is None:
        assert found.problem is None
    else:
        assert found.problem is not None
        assert found.problem.reason == "GoldenConfigMapNotFound"
        assert said in found.problem.message
        assert found.unknown == found.problem.message


async def test_a_job_of_another_update_is_not_meant() -> None:
    found = await observe(SET, golden.job(NAME, "another one"), golden.pod(golden.report()))
    assert (found.job, found.report) == (None, None)


WAITING = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}


@pytest.mark.parametrize(
    ("pods", "condition", "said"),
    [
        ([], None, "is being asked"),
        ([golden.pod(code=None)], None, "is being asked"),
        ([golden.pod(containerStatuses=[{"state": WAITING}])], None, "asked: an image of pod pod can't be"),
        ([golden.pod("bad line 3", 2)], None, "is being asked"),
        ([golden.pod("bad line 3", 2)], ("Failed", "backoff"), "can't be asked: bad line 3; `kubectl logs"),
        ([], ("Failed", "was active longer than"), "can't be asked: was active longer than;"),
        ([golden.pod("no JSON")], None, "what its Job reports is none: Invalid JSON"),
        ([golden.pod("")], ("Complete", ""), "what its Job reports is empty"),
    ],
)
async def test_what_is_not_known_has_a_reason(
    pods: list[dict[str, Any]], condition: tuple[str, str] | None, said: str
) -> None:
    found = await observe(golden.job(NAME, run(), condition), *pods)
    assert (found.job, found.report, found.lost) == ("job-uid", None, False)
    assert said in found.unknown


async def test_a_report_is_found_before_the_job_is_told_to_be_complete() -> None:
    found = await observe(golden.job(NAME, run()), golden.pod("x", 1), golden.pod(golden.report()))
    assert found.report is not None
    assert found.report.expected == 8
    assert found.ended_at == datetime(2026, 1, 2, 3, tzinfo=UTC)


async def test_pods_of_others_report_nothing() -> None:
    found = await observe(golden.job(NAME, run()), golden.pod(golden.report(), owner="another"))
    assert found.report is None


async def test_a_report_that_went_with_its_pod_is_lost() -> None:
    assert (await observe(golden.job(NAME, run(), ("Complete", "")))).lost


def status(record: UpdateStatus | None = None, history: tuple[Any, ...] = ()) -> PoolStatus:
    return PoolStatus().model_copy(update={"update": record, "history": history})


async def test_jobs_are_looked_for_where_there_may_be_some() -> None:
    """A steady pool costs one look after a change, and none where it has never been updated."""
    api = Objects(golden.job(NAME, "run"))
    of = sets(api)
    assert await of.children("default", "pool", SPEC, status(), ()) == {}
    assert api.calls == []
    for _ in range(3):
        found = await of.children("default", "pool", SPEC, status(history=("something",)), ())
        assert set(found) == {ChildKey(JOB.kind, NAME)}
    assert api.calls == ["list jobs"]
    for _ in range(2):
        await of.children("default", "pool", spec(), status(RECORD), ())
    assert api.calls == ["list jobs"] * 3


@pytest.mark.parametrize("policies", [True, False])
async def test_what_has_the_name_already_is_seen(policies: bool) -> None:
    """What is somebody else's would be taken over otherwise."""
    other = {"kind": "Job", "metadata": {"name": NAME}}
    api = Objects(other, {"kind": "NetworkPolicy", "metadata": {"name": NAME}})
    found = await sets(api, policies=policies).children("default", "pool", SPEC, status(RECORD), ())
    assert (ChildKey(JOB.kind, NAME) in found, ChildKey(NETWORK_POLICY.kind, NAME) in found) == (
        True,
        policies,
    )
    assert not any(CONFIG_MAP.plural in call for call in api.calls)


def count(side: str, of: str = "count", namespace: str = "hits") -> float | None:
    labels = {"namespace": namespace, "pool": "pool", "side": side}
    return REGISTRY.get_sample_value(f"anthropic_ska_knowledge_hits_{of}", labels)


def finished(job: str = "uid", record: UpdateStatus = RECORD, **fields: Any) -> ObservedPool:
    found = ObservedGolden("run", job, read_report(json.dumps(golden.report(**fields))))
    return pool(SPEC, namespace="hits", golden=found, status=status(record))


def test_each_run_is_counted_once() -> None:
    hits = KnowledgeHits()
    for _ in range(3):
        hits.saw(finished(green={"hits": 6}))
    assert (count("blue"), count("blue", "sum"), count("green"), count("green", "sum")) == (1, 1.0, 1, 0.75)
    hits.saw(replace(finished(), golden=None))
    hits.saw(finished("another"))
    assert (count("green"), count("green", "sum")) == (2, 1.75)
    hits.forget(PoolKey("hits", "pool"))
    assert count("green") is None
    hits.forget(PoolKey("hits", "pool"))


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(finished(green={"hits": 7, "errors": 1}), id="unanswered"),
        pytest.param(finished(expected=0, blue={"hits": 0}, green={"hits": 0}), id="nothing expected"),
        pytest.param(
            finished(
                record=RECORD.model_copy(
                    update={
                        "checks": (
                            CheckStatus.model_validate_json('{"name": "goldenAnswers", "result": "Ok"}'),
                        )
                    }
                )
            ),
            id="told by an earlier operator",
        ),
    ],
)
def test_what_is_not_counted(seen: ObservedPool) -> None:
    KnowledgeHits().saw(seen)
    assert count("green") is None
