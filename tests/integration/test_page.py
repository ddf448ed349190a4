"""The operator's page in a real browser, served by the real operator process."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from zerolayer_dev import vendored
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.browser import PoolPage, as_shown
from zerolayer_dev.testing.fake_kubelet import make_ready
from zerolayer_dev.testing.operator_process import OperatorProcess, replicas
from zerolayer_dev.testing.pools import Pool, cpu_pool
from zerolayer_dev.testing.waiting import wait_for

AUTOSCALING = {"minReplicas": 2, "maxReplicas": 4, "metric": {"type": "CPU", "target": 80}}

Start = Callable[[str], OperatorProcess]


@pytest.fixture
def replica(api: LocalCluster, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Starts replicas of an operator for the test's namespace."""
    account = Account(api, namespace, watch=(namespace,))
    with replicas(account, tmp_path, resync_interval_s=1) as start:
        yield start
    account.remove()


@pytest.fixture
def pools(api: LocalCluster, namespace: str) -> Iterator[list[Pool]]:
    """Two autoscaled pools."""
    objects = kube.client(api.kubeconfig)
    made = [Pool(objects, api.kubectl, namespace, name) for name in ("audio", "chat")]
    for pool in made:
        manifest = cpu_pool(pool.name, namespace, autoscaling=AUTOSCALING)
        api.kubectl("apply", "--filename=-", stdin=json.dumps(manifest))
    yield made
    objects.session.close()


def wait_served(api: LocalCluster, pool: Pool) -> None:
    """Plays the kubelet until the pool has its workers and its status says how it is scaled."""

    def look() -> bool:
        make_ready(api, pool.api, pool.namespace, pool.name)
        return pool.status.get("readyReplicas") == 2 and "scaling" in pool.status

    pool.wait(look, bool, what="two workers and a status", seconds=180)


def address(operator: OperatorProcess) -> str:
    return f"http://localhost:{operator.page_port}/"


@pytest.mark.promise("dashboard")
def test_page_tells_what_kubectl_tells(
    api: LocalCluster,
    replica: Start,
    pools: list[Pool],
    chromium: Browser,
    figures: Callable[..., None],
) -> None:
    """The operator's page shows in a browser what `kubectl get zlp` says, and asks nobody else."""
    leader = replica("leader")
    leader.wait_role("leading")
    standby = replica("standby")
    standby.wait_role("standby")
    for pool in pools:
        wait_served(api, pool)
    chat = pools[1]
    page = PoolPage(chromium, address(leader))
    page.open()
    page.choose(chat.namespace, chat.name)

    def both() -> tuple[dict[str, str], dict[str, str]]:
        # Why a load is not known may be put otherwise from look to look.
        told = as_shown(chat.status["scaling"])
        del told["why"]
        shown = page.facts()
        return {name: shown.get(name, "") for name in told}, told

    shown, _ = wait_for(both, until=lambda seen: seen[0] == seen[1], what="page and status", seconds=60)
    assert shown["window"] == "300 s"
    assert page.facts()["ready"] == "2"
    assert page.row("audio")[3:6] == ["2 / 2", "300 s", "none"]
    barriers = page.barriers()
    figures(values=len(shown), asked=len(page.asked), outside=len(page.outside()), barriers=len(barriers))
    assert barriers == []

    other = PoolPage(chromium, address(standby), color_scheme="dark")
    other.open()
    assert "leader leads" in other.page.locator("#source").inner_text()
    assert "port-forward pod/leader" in other.page.locator("#empty").inner_text()
    assert other.barriers() == []
    assert page.outside() == other.outside() == []
    assert page.complaints == other.complaints == []
    assert leader.stop() == 0, "a page that is looked at keeps nobody from stopping"


def test_page_is_used_by_the_keyboard_and_in_another_zone(
    api: LocalCluster, replica: Start, pools: list[Pool], chromium: Browser
) -> None:
    leader = replica("leader")
    for pool in pools:
        wait_served(api, pool)
    tab = PoolPage(chromium, address(leader), color_scheme="dark", timezone_id="Asia/Kathmandu")
    tab.open()
    page = tab.page

    page.get_by_label("Filter by name or namespace").fill("aud")
    assert page.locator("#list tbody tr:visible").count() == 1
    assert page.locator("#count").inner_text() == "1 of 2"
    page.get_by_label("Filter by name or namespace").fill("")

    tab.choose(pools[0].namespace, "audio")
    assert page.evaluate("document.activeElement.id") == "pool"
    assert page.locator("#list a[aria-current]").inner_text() == "audio"
    assert page.locator("#zone").inner_text() in ("Asia/Kathmandu", "Asia/Katmandu")
    charts = page.get_by_role("img").all()
    assert len(charts) == 7
    assert all((chart.get_attribute("aria-label") or "").startswith("Chart of ") for chart in charts)
    assert "window between 300 s and 300 s" in str(charts[3].get_attribute("aria-label"))

    page.get_by_text("Scale-down window as a table").focus()
    page.keyboard.press("Enter")
    table = page.get_by_role("region", name="Scale-down window as a table")
    wait_for(lambda: table.locator("tbody td").all_inner_texts(), what="the table", seconds=10)
    assert set(table.locator("tbody td").all_inner_texts()) == {"300 s"}
    assert tab.barriers() == []
    assert tab.complaints == []

    leader.kill()
    page.get_by_role("alert").filter(has_text="does not answer").wait_for(timeout=20_000)


def test_library_of_the_page_is_what_npm_has() -> None:
    assert vendored.stale(vendored.UPLOT, repo_root()) == []
