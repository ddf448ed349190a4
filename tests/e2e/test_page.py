"""The operator's page, as people reach it, on a pool under load."""

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing.browser import PoolPage, as_shown, browser
from zerolayer_dev.testing.load import Client, Load
from zerolayer_dev.testing.pools import DEMO_MODEL, Pool
from zerolayer_dev.testing.port_forward import forwarded
from zerolayer_dev.testing.release import NAMESPACE, RELEASE, Release

PAGE_PORT = 8082
AUTOSCALING = {"minReplicas": 1, "maxReplicas": 2, "metric": {"type": "CPU", "target": 100}}
CLIENTS = [Client(streams=bool(number), keeps_alive=True) for number in range(2)]


@pytest.fixture
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


def agreement(page: PoolPage, pool: Pool) -> dict[str, tuple[str, str]]:
    """What the page shows and what kubectl says, by figure; empty until both know the load."""
    said = json.loads(pool.kubectl("-n", pool.namespace, "get", "zlp", pool.name, "-o", "json"))
    told, shown = as_shown(said["status"].get("scaling", {})), page.facts()
    if "unknown" in told.values() or told["window"] == "300 s":
        return {}
    return {name: (shown.get(name, ""), value) for name, value in told.items()}


def agree(seen: dict[str, tuple[str, str]]) -> bool:
    return bool(seen) and all(shown == told for shown, told in seen.values())


@pytest.mark.long
@pytest.mark.promise("dashboard")
def test_page_tells_of_real_workers_what_kubectl_tells(
    cluster: Cluster,
    release: Release,
    pool: Callable[..., Pool],
    chromium: Browser,
    figures: Callable[..., None],
) -> None:
    """Through `kubectl port-forward` the page shows of a pool under load what `kubectl get zlp` says."""
    chat = pool("chat", autoscaling=AUTOSCALING)
    chat.wait_ready(1)
    with (
        Load(chat.url, model=DEMO_MODEL, clients=CLIENTS, max_tokens=32) as load,
        forwarded(cluster, NAMESPACE, f"deployment/{RELEASE}", PAGE_PORT) as url,
    ):
        page = PoolPage(chromium, url)
        page.open()
        page.page.get_by_role("link", name="chat", exact=True).wait_for(timeout=60_000)
        page.choose(chat.namespace, chat.name)
        seen = chat.wait(
            lambda: agreement(page, chat), agree, what="a narrower window, on the page too", seconds=720
        )
        page.picture(repo_root() / "docs" / "images" / "page.png")
        barriers = page.barriers()
    shown = {name: value for name, (value, _) in seen.items()}
    figures(**shown, requests=len(load.attempts), outside=len(page.outside()), barriers=len(barriers))

    assert shown["utilization"] != "0 %"
    assert load.failures == []
    assert barriers == page.outside() == page.complaints == []
