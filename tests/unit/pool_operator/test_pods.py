"""What a pod's status says is wrong, in words that name the remedy."""

from typing import Any

import pytest

from zerolayer_operator.observe.parse import parse_pod
from zerolayer_operator.observe.pods import pod_problem


def body(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "status": status}


def waiting(reason: str, message: str = "because") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": "zerolayer-worker", "image": "w:1", "state": state}


def ended(code: int, reason: str = "Error", message: str = "", *, ready: bool = False) -> dict[str, Any]:
    last = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    state = {"running": {}} if ready else {"waiting": {"reason": "CrashLoopBackOff"}}
    return {"name": "w", "image": "w:1", "ready": ready, "restartCount": 3, "state": state, "lastState": last}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
}


@pytest.mark.parametrize(
    ("status", "reason", "said"),
    [
        ({"conditions": [UNSCHEDULABLE]}, "Unschedulable", "nvidia.com/gpu"),
        ({"containerStatuses": [waiting("ErrImagePull", "")]}, "ImagePullFailed", "w:1"),
        ({"containerStatuses": [waiting("ImagePullBackOff")]}, "ImagePullFailed", "imagePullSecrets"),
        ({"containerStatuses": [waiting("InvalidImageName")]}, "ImagePullFailed", "because"),
        ({"containerStatuses": [waiting("ErrImageNeverPull")]}, "ImagePullFailed", "because"),
        (
            {"containerStatuses": [waiting("CreateContainerConfigError", 'secret "s" not found')]},
            "ContainerNotStarted",
            'secret "s" not found',
        ),
        (
            {"containerStatuses": [ended(1, message="max_model_len 9 exceeds the model's 8")]},
            "WorkerFails",
            "spec.worker.maxModelLen 9 exceeds",
        ),
        (
            {"containerStatuses": [ended(2, message="--builtin: there is no such model")]},
            "WorkerFails",
            "spec.model.source.builtin.name: there",
        ),
        ({"containerStatuses": [ended(1)]}, "WorkerFails", "exit code 1"),
        ({"containerStatuses": [ended(0, "Completed")]}, "WorkerFails", "exit code 0"),
        ({"containerStatuses": [ended(137, "OOMKilled")]}, "OutOfMemory", "limits.memory"),
        ({"initContainerStatuses": [ended(1, message="404")]}, "ModelNotFetched", "404"),
        (
            {"initContainerStatuses": [{**ended(1, message="cp: no such file"), "name": "copy-anchor"}]},
            "AnchorNotFetched",
            "cp: no such file; check spec.anchor.source.image",
        ),
        (
            {"containerStatuses": [ended(2, message="AnchorDigestMismatch: the file has digest sha256:0")]},
            "AnchorDigestMismatch",
            "refuses its anchor: the file has digest sha256:0; check spec.anchor",
        ),
        (
            {
                "containerStatuses": [
                    ended(2, message="12:00 WARN slow\nAnchorNotFinite: --anchor-path has nan")
                ]
            },
            "AnchorNotFinite",
            "refuses its anchor: spec.anchor.source has nan",
        ),
        ({"containerStatuses": [ended(2, message="no Anchor: here")]}, "WorkerFails", "no Anchor: here"),
        (
            {"containerStatuses": [ended(2, message="XAnchorWrongShape: a")]},
            "WorkerFails",
            "XAnchorWrongShape",
        ),
    ],
)
def test_problem_has_a_reason_and_a_remedy(status, reason, said) -> None:
    problem = pod_problem(body(**status))

    assert problem is not None
    assert problem.reason == reason
    assert said in problem.message
    assert "; " in problem.message


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"containerStatuses": [waiting("ContainerCreating")]},
        {"containerStatuses": [waiting("PodInitializing")]},
        {"containerStatuses": [ended(1, ready=True)]},
        {"initContainerStatuses": [ended(0)]},
        {"conditions": [{"type": "PodScheduled", "status": "True"}]},
    ],
    ids=["fresh", "creating", "initialising", "recovered", "fetched", "scheduled"],
)
def test_nothing_is_wrong_with_a_pod_that_makes_progress(status) -> None:
    assert pod_problem(body(**status)) is None


def test_long_last_words_are_cut_at_the_front() -> None:
    problem = pod_problem(body(containerStatuses=[ended(1, message="x" * 5000 + "\nthe reason")]))

    assert problem is not None
    assert "the reason" in problem.message
    assert len(problem.message) < 1000


def test_pod_is_read() -> None:
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"},
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-02T03:04:09Z"},
        {"type": "PodReadyToStartContainers", "status": "True"},
    ]
    found = parse_pod(
        {
            "metadata": {
                "name": "p",
                "labels": {"zerolayer.dev/revision": "r"},
                "deletionTimestamp": "2026-01-02T03:05:35Z",
            },
            "spec": {"nodeName": "n"},
            "status": {"conditions": conditions},
        }
    )

    assert (found.name, found.revision, found.node) == ("p", "r", "n")
    assert found.scheduled_at is not None
    assert (found.scheduled_at.second, found.ready_at) == (5, None)
    assert found.started
    assert found.deleting
    assert found.gone_by is not None
    assert found.gone_by.minute == 5


@pytest.mark.parametrize(
    ("container", "second"),
    [
        ({"restartCount": 0, "state": {"running": {"startedAt": "2026-01-02T03:04:07Z"}}}, 7),
        ({"restartCount": 1, "state": {"running": {"startedAt": "2026-01-02T03:04:07Z"}}}, None),
        ({"restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}, None),
    ],
)
def test_a_first_start_is_on_record_until_the_container_restarts(container, second) -> None:
    found = parse_pod({"metadata": {"name": "p"}, "spec": {}, "status": {"containerStatuses": [container]}})

    started = found.container_started_at
    assert (started.second if started is not None else None) == second


@pytest.mark.parametrize(
    ("since", "status", "running", "reason"),
    [
        ("2026-01-02T04:00:00Z", "False", True, "WorkerNotReady"),
        ("2026-01-02T04:00:00Z", "True", True, None),
        ("2026-01-02T03:04:05Z", "False", True, None),
        ("2026-01-02T03:04:04Z", "False", True, None),
        ("2026-01-02T04:00:00Z", "False", False, None),
    ],
    ids=["was ready", "is ready", "scheduled and started at once", "warming up", "not started"],
)
def test_worker_that_runs_on_but_is_ready_no_more_is_noticed(since, status, running, reason) -> None:
    ready = {"type": "Ready", "status": status, "lastTransitionTime": since}
    state = {"running": {"startedAt": "2026-01-02T03:04:05Z"}} if running else {"waiting": {}}
    problem = pod_problem(body(conditions=[ready], containerStatuses=[{"name": "w", "state": state}]))

    assert (problem.reason if problem is not None else None) == reason


@pytest.mark.parametrize(
    ("reason", "volumes", "remedy"),
    [
        ("CreateContainerError", [{"name": "model", "image": {}}], "worker.imageVolumes=false"),
        ("CreateContainerError", [{"name": "tmp", "emptyDir": {}}], "check spec.worker.env"),
        ("CreateContainerConfigError", [{"name": "model", "image": {}}], "check spec.worker.env"),
    ],
)
def test_container_that_mounts_an_image_in_vain_names_the_chart_s_switch(reason, volumes, remedy) -> None:
    mkdir = 'failed to generate spec: failed to mkdir "": mkdir : no such file or directory'
    problem = pod_problem({**body(containerStatuses=[waiting(reason, mkdir)]), "spec": {"volumes": volumes}})

    assert problem is not None
    assert problem.reason == "ContainerNotStarted"
    assert remedy in problem.message
