"""`kubectl zerolayer` against a real API server; a test says what the operator would write."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.plugin_process import Plugin
from zerolayer_dev.testing.updating_pools import (
    BLUE,
    GREEN,
    POOL,
    failed,
    finished,
    revision_deployment,
    status_with,
    update_at,
)
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator.api.status import Phase
from zerolayer_operator.api.update_status import End, Step

GONE = {"update": None, "failed": None}
NOTHING_DONE = (None, None)


@pytest.fixture
def plugin(api: LocalCluster, namespace: str, tmp_path: Path) -> Plugin:
    """The plugin for the test's namespace."""
    return Plugin(api, namespace, tmp_path)


@pytest.fixture
def tell(api: LocalCluster, namespace: str, apply_pool: Callable[..., None]) -> Callable[[Manifest], None]:
    """Makes the pool, and lets its status say what a test wants, as the operator would."""
    apply_pool(POOL)

    def tell(status: Manifest) -> None:
        patch = json.dumps({"status": GONE | status})
        api.kubectl(
            "-n", namespace, "patch", "zlp", POOL, "--subresource=status", "--type=merge", f"--patch={patch}"
        )

    return tell


@pytest.fixture
def asked(api: LocalCluster, namespace: str) -> Callable[[], tuple[str | None, str | None]]:
    """What annotations ask of the pool: to promote, and to roll back."""

    def read() -> tuple[str | None, str | None]:
        found = json.loads(api.kubectl("-n", namespace, "get", "zlp", POOL, "-o", "json"))
        annotations = found["metadata"].get("annotations", {})
        return annotations.get("zerolayer.dev/promote"), annotations.get("zerolayer.dev/rollback")

    return read


@pytest.fixture
def users(api: LocalCluster, namespace: str) -> Iterator[None]:
    """A viewer and an editor of the namespace, by the rights that the chart adds to both roles."""
    rendered = api.helm(
        "template", f"users-{namespace}", str(repo_root() / "charts" / "zerolayer"),
        "--show-only=templates/rbac-users.yaml",
    )  # fmt: skip
    api.kubectl("apply", "--filename=-", stdin=rendered)
    for role in ("view", "edit"):
        api.kubectl(
            "-n", namespace, "create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}er"
        )
    yield
    api.kubectl("delete", "--filename=-", stdin=rendered)


def deploy(api: LocalCluster, namespace: str, revision: str, size: int) -> None:
    """Makes a revision's Deployment, as far as the plugin looks at it."""
    body = revision_deployment(revision, size, 0)
    labels = body["metadata"]["labels"]
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "worker", "image": "none"}]}}
    spec = body["spec"] | {"selector": {"matchLabels": labels}, "template": pod}
    full = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": body["metadata"], "spec": spec}
    api.kubectl("-n", namespace, "apply", "--filename=-", stdin=json.dumps(full))


def written(api: LocalCluster, namespace: str) -> str:
    """When the pool's wish was written, which the operator goes by."""
    found = json.loads(
        api.kubectl("-n", namespace, "get", "zlp", POOL, "-o", "json", "--show-managed-fields")
    )
    return next(
        entry["time"]
        for entry in found["metadata"]["managedFields"]
        if "f:zerolayer.dev/promote" in entry["fieldsV1"].get("f:metadata", {}).get("f:annotations", {})
    )


def told(process: subprocess.Popen[str], *words: str) -> list[str]:
    """Reads a process's lines up to the first that has all the words."""
    lines: list[str] = []
    for line in process.stdout or ():
        lines.append(line)
        if all(word in line for word in words):
            return lines
    raise AssertionError(f"no line with {words}: {lines}, {process.communicate()[1]}")


def watches_of(process: subprocess.Popen[str]) -> list[int]:
    """Process ids of the watches that the plugin runs."""
    found = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


def test_status_history_and_explanation_of_a_pool(
    api: LocalCluster, namespace: str, plugin: Plugin, tell: Callable[[Manifest], None]
) -> None:
    tell(status_with(update_at(Step.SOAK), history=(finished(End.ROLLED_BACK),)))
    deploy(api, namespace, BLUE, 3)
    deploy(api, namespace, GREEN, 1)

    status, past, why = plugin("status", POOL), plugin("history", POOL), plugin("explain", POOL)
    document: dict[str, Any] = json.loads(plugin("status", POOL, "-o", "json").stdout)

    assert f"POOL        {POOL} in namespace {namespace}\n" in status.stdout
    assert f"CANARY      {GREEN} (anchor v2)   0/1 ready   10% of the requests\n" in status.stdout
    assert "NoData   consistency   no request was asked again\n" in status.stdout
    assert document["serving"] == {"revision": BLUE, "anchor": "v1", "replicas": 3, "readyReplicas": 0}
    assert "RolledBack   WrongAnswers" in past.stdout
    assert "320 more answers of the canary" in why.stdout
    assert (status.returncode, past.returncode, why.returncode) == (0, 0, 0)
    assert (status.stderr, past.stderr, why.stderr) == ("", "", "")


def test_a_wish_replaces_the_one_before(
    plugin: Plugin, tell: Callable[[Manifest], None], asked: Callable[[], tuple[str | None, str | None]]
) -> None:
    tell(status_with(update_at(Step.SOAK)))

    assert plugin("promote", POOL, "--yes").stdout == f"asked the operator to promote revision {GREEN}\n"
    assert asked() == (GREEN, None)
    assert plugin("rollback", POOL, "-y").stdout == f"asked the operator to roll back revision {GREEN}\n"
    assert asked() == (None, GREEN)


def test_the_same_wish_about_a_later_update_is_a_new_one(
    api: LocalCluster, namespace: str, plugin: Plugin, tell: Callable[[Manifest], None]
) -> None:
    tell(status_with(update_at(Step.SOAK)))
    plugin("promote", POOL, "--yes")
    first = written(api, namespace)
    wait_for(
        lambda: plugin("promote", POOL, "--yes") and written(api, namespace),
        until=lambda again: again > first,  # times have whole seconds
        what="a wish with a time of its own",
        seconds=20,
    )


def test_what_is_refused_changes_nothing_and_is_one_sentence(
    plugin: Plugin, tell: Callable[[Manifest], None], asked: Callable[[], tuple[str | None, str | None]]
) -> None:
    tell(status_with(update_at(Step.SOAK)))
    unasked = plugin("promote", POOL)
    tell(status_with())
    refused = [unasked, plugin("promote", POOL, "--yes"), plugin("rollback", POOL, "--yes")]
    missing = plugin("status", "another")

    assert "add --yes" in unasked.stderr
    assert 'zerolayerpools.zerolayer.dev "another" not found' in missing.stderr
    for said in (*refused, missing):
        assert (said.returncode, said.stdout) == (2, "")
        assert said.stderr.startswith("kubectl zerolayer: ")
        assert said.stderr.count("\n") == 1
    assert asked() == NOTHING_DONE


def test_on_a_terminal_a_person_is_asked(
    plugin: Plugin, tell: Callable[[Manifest], None], asked: Callable[[], tuple[str | None, str | None]]
) -> None:
    tell(status_with(update_at(Step.SOAK)))

    no = plugin.on_terminal("promote", POOL, typed="n\n")
    assert (no.returncode, asked()) == (2, NOTHING_DONE)
    yes = plugin.on_terminal("promote", POOL, typed="y\n")
    assert (yes.returncode, asked()) == (0, (GREEN, None))
    assert "verdict: Undecided, 180 answers? [y/N]" in yes.stderr


@pytest.mark.usefixtures("users")
@pytest.mark.promise("update-by-hand")
def test_editors_decide_and_viewers_look(
    plugin: Plugin,
    tell: Callable[[Manifest], None],
    asked: Callable[[], tuple[str | None, str | None]],
    figures: Callable[..., None],
) -> None:
    """Who may edit a pool may promote and roll back with `kubectl zerolayer`; who may view it may look."""
    tell(status_with(update_at(Step.AWAIT_PROMOTION)))
    looked = wait_for(
        lambda: plugin("status", POOL, "--as=viewer"),
        until=lambda said: said.returncode == 0,
        what="the aggregated rights of view",
        seconds=30,
    )
    refused = plugin("promote", POOL, "--yes", "--as=viewer")

    assert "AwaitPromotion" in looked.stdout
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert 'User "viewer" cannot patch resource "zerolayerpools"' in refused.stderr
    assert asked() == NOTHING_DONE
    wait_for(
        lambda: plugin("promote", POOL, "--yes", "--as=editer"),
        until=lambda said: said.returncode == 0,
        what="the aggregated rights of edit",
        seconds=30,
    )
    assert asked() == (GREEN, None)
    assert plugin("rollback", POOL, "--yes", "--as=editer").returncode == 0
    assert asked() == (None, GREEN)
    figures(viewer_may=["status", "history", "explain"], editor_may=["promote", "rollback"])


@pytest.mark.promise("update-by-hand")
@pytest.mark.parametrize(("end", "code"), [(End.PROMOTED, 0), (End.ROLLED_BACK, 1)])
def test_who_follows_an_update_learns_how_it_ends(
    api: LocalCluster,
    namespace: str,
    plugin: Plugin,
    tell: Callable[[Manifest], None],
    figures: Callable[..., None],
    end: End,
    code: int,
) -> None:
    """`kubectl zerolayer status --until-done` outlives its watches and ends with how the update ended."""
    tell(status_with(update_at(Step.SOAK)))
    deploy(api, namespace, GREEN, 1)
    following = plugin.start("status", POOL, "--until-done", "--timeout=2m")
    told(following, "Soak:", f"{GREEN} 0/1 ready")

    for watch in watches_of(following):
        os.kill(watch, signal.SIGKILL)
    tell(status_with(update_at(Step.SOAK, samples=400)))
    told(following, "after 400 answers")
    deploy(api, namespace, GREEN, 2)
    told(following, f"{GREEN} 0/2 ready")
    over = {"failed": failed(), "phase": Phase.DEGRADED} if end == End.ROLLED_BACK else {}
    tell(status_with(history=(finished(end),), **over))

    lines, errors = following.communicate(timeout=30)
    figures(end=end, code=following.returncode, told=errors.splitlines()[-1])
    assert following.returncode == code
    assert f"{end} (" in lines
    assert errors.splitlines()[-1].startswith(f"the update to revision {GREEN} (anchor v2) ended: {end}")


def test_who_asks_may_wait_for_it(plugin: Plugin, tell: Callable[[Manifest], None]) -> None:
    tell(status_with(update_at(Step.SOAK)))
    waiting = plugin.start("promote", POOL, "--yes", "--wait")
    told(waiting, "Soak:")
    tell(status_with(update_at(Step.RETAIN)))

    assert waiting.communicate(timeout=30)[1] == f"revision {GREEN} (anchor v2) has taken over\n"
    assert waiting.returncode == 0


def test_following_notices_a_pool_that_goes_between_two_watches(
    api: LocalCluster, namespace: str, plugin: Plugin, tell: Callable[[Manifest], None]
) -> None:
    tell(status_with(update_at(Step.SOAK)))
    following = plugin.start("status", POOL, "--watch", "-o", "json")
    told(following, "Soak")
    for watch in watches_of(following):
        os.kill(watch, signal.SIGKILL)
    api.kubectl("-n", namespace, "delete", "zlp", POOL)

    assert following.communicate(timeout=30)[1].endswith(f"pool {POOL} has been deleted\n")
    assert following.returncode == 2


def test_following_ends_with_the_pool_and_with_its_time(
    api: LocalCluster, namespace: str, plugin: Plugin, tell: Callable[[Manifest], None]
) -> None:
    tell(status_with(update_at(Step.SOAK)))
    late = plugin("status", POOL, "--watch", "--timeout=1s")
    following = plugin.start("status", POOL, "--watch", "-o", "json")
    assert json.loads(told(following, "Soak")[-1])["pool"] == POOL
    api.kubectl("-n", namespace, "delete", "zlp", POOL)

    assert following.communicate(timeout=30)[1] == f"kubectl zerolayer: pool {POOL} has been deleted\n"
    assert following.returncode == 2
    assert (late.returncode, late.stderr) == (3, "kubectl zerolayer: it took longer than 1 s\n")
