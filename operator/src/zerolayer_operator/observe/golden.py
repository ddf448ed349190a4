"""The golden set of an update: its source, the Job that asks it, and the report that this leaves behind."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.golden import GoldenReport, ReportError, read_report
from zerolayer_operator.api.kinds import CONFIG_MAP, JOB, NETWORK_POLICY, POD
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.api.update import GoldenConfigMap
from zerolayer_operator.api.update_status import Step, UpdateStatus
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.access import conditions, items, section, timestamp
from zerolayer_operator.observe.kept import KeptLists
from zerolayer_operator.observe.parse import annotation
from zerolayer_operator.observe.pods import pod_problem
from zerolayer_operator.observe.state import ChildKey, Object, ObservedGolden, Problem
from zerolayer_operator.observe.wording import one_line

_BEFORE_ASKED: Final = frozenset({Step.PREPARE, Step.SOAK, Step.AWAIT_PROMOTION})
_RUNS: Final = "the golden set is being asked"
_WAITS: Final = "the golden set has not been asked yet"


@dataclass(frozen=True, slots=True)
class GoldenSets:
    """Looks at the golden set of one pool.

    Attributes:
        kube: The API server.
        kept: Lists of steady objects.
        policies: Whether pools have NetworkPolicies.
    """

    kube: Kube
    kept: KeptLists
    policies: bool

    async def children(
        self,
        namespace: str,
        pool: str,
        spec: PoolSpec | None,
        status: PoolStatus,
        found: Collection[ChildKey],
    ) -> dict[ChildKey, Object]:
        """The Jobs that ask a pool's golden sets, and whatever else has the name of the one to be made.

        None are looked for where there has never been an update.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """

        async def look() -> list[Object]:
            return await self.kube.list(JOB, namespace, f"{names.LABEL_POOL}={pool}")

        if status.update is None and not status.history:
            return {}
        # After an update only leftovers are looked for: Jobs that nobody could delete when it ended.
        jobs = await (look() if status.update is not None else self.kept.get((namespace, pool), JOB, look))
        bodies = {ChildKey(JOB.kind, body["metadata"]["name"]): body for body in jobs}
        if status.update is None or spec is None or spec.update.golden is None:
            return bodies
        name = names.golden_name(pool, status.update.to_revision)
        kinds = (JOB, *((NETWORK_POLICY,) if self.policies else ()))
        absent = [kind for kind in kinds if ChildKey(kind.kind, name) not in {*found, *bodies}]
        others = [(kind, await self.kube.get(kind, namespace, name)) for kind in absent]
        return bodies | {ChildKey(kind.kind, name): body for kind, body in others if body is not None}

    async def observed(
        self,
        namespace: str,
        pool: str,
        spec: PoolSpec | None,
        record: UpdateStatus | None,
        children: Mapping[ChildKey, Object],
    ) -> ObservedGolden | None:
        """The golden set of the update that is going on; ``None`` where there is no update, or it has none.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        golden = spec.update.golden if spec is not None else None
        if record is None or golden is None:
            return None
        run = golden_run(record, golden.config_map)
        job = children.get(ChildKey(JOB.kind, names.golden_name(pool, record.to_revision)))
        if job is None or annotation(job, names.ANNOTATION_GOLDEN_RUN) != run:
            asked = record.step in _BEFORE_ASKED
            problem = await _problem(self.kube, namespace, golden.config_map) if asked else None
            return ObservedGolden(run, unknown=problem.message if problem else _WAITS, problem=problem)
        pods = await self.kube.list(POD, namespace, f"{names.LABEL_GOLDEN}={pool}")
        uid = str(section(job, "metadata").get("uid"))
        return _of_job(run, job, uid, [pod for pod in pods if _belongs(pod, uid)])


def golden_run(record: UpdateStatus, source: GoldenConfigMap) -> str:
    """Stands for one update and the set that it is asked: with another set, it is asked again."""
    return f"{record.started_at} {record.from_revision} {source.name}/{source.key}"


async def _problem(kube: Kube, namespace: str, source: GoldenConfigMap) -> Problem | None:
    body = await kube.get(CONFIG_MAP, namespace, source.name)
    field = "spec.update.golden.configMap"
    if body is None:
        return Problem(
            "GoldenConfigMapNotFound",
            f"{field}.name names ConfigMap {source.name}, which namespace {namespace} doesn't have; create "
            "it or correct the name",
        )
    if source.key not in section(body, "data") and source.key not in section(body, "binaryData"):
        return Problem(
            "GoldenConfigMapNotFound",
            f"{field} names key {source.key}, which ConfigMap {source.name} doesn't have; add it or correct "
            "the key",
        )
    return None


def _belongs(pod: Object, job: str) -> bool:
    return any(owner.get("uid") == job for owner in items(pod, "metadata", "ownerReferences"))


def _of_job(run: str, job: Object, uid: str, pods: Sequence[Object]) -> ObservedGolden:
    ended = sorted(filter(None, map(_ended, pods)), key=lambda item: str(item.get("finishedAt") or ""))
    done = [item for item in ended if item.get("exitCode") == 0]
    if done:
        report, unknown = _read(str(done[-1].get("message") or ""))
        return ObservedGolden(run, uid, report, timestamp(done[-1].get("finishedAt")), unknown)
    told = conditions(job)
    if _holds(told, "Failed"):
        return ObservedGolden(run, uid, unknown=_failed(job, told["Failed"], ended))
    if _holds(told, "Complete"):
        # Whoever removed its pod has taken the report along.
        return ObservedGolden(run, uid, unknown=_WAITS, lost=True)
    problems = filter(None, map(pod_problem, pods))
    waits = next((problem.message for problem in problems), None)
    return ObservedGolden(run, uid, unknown=_RUNS if waits is None else f"{_RUNS}: {waits}")


def _ended(pod: Object) -> Object | None:
    """How the container of a pod ended."""
    for container in items(pod, "status", "containerStatuses"):
        ended = section(container, "state", "terminated")
        if ended:
            return ended
    return None


def _read(text: str) -> tuple[GoldenReport | None, str]:
    try:
        return read_report(text), ""
    except ReportError as error:
        return None, f"the golden set was asked, but what its Job reports {error}"


def _failed(job: Object, condition: Object, ended: Sequence[Object]) -> str:
    name = job["metadata"]["name"]
    said = one_line(ended[-1].get("message")) if ended else ""
    why = said or one_line(condition.get("message")) or str(condition.get("reason"))
    return (
        f"the golden set can't be asked: {why}; `kubectl logs job/{name}` shows more, and a deleted Job is "
        "made anew"
    )


def _holds(told: Mapping[str, Object], kind: str) -> bool:
    return told.get(kind, {}).get("status") == "True"
