"""The page in a real browser, with what it may be told: nothing, one pool, hundreds, odd figures."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from playwright.sync_api import Browser

from zerolayer_dev.testing.browser import PoolPage
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.page.history import STEP_S, History
from zerolayer_operator.page.server import HOST, page_app
from zerolayer_operator.serve import served
from zerolayer_operator.settings import Settings
from zerolayer_operator.workqueue import PoolKey

POOLS = 500
MONEY = ("saved-money", "spent", "weighted", "first-token", "latency-penalty")
FIGURES = Figures(
    at=0.0,
    wanted=3,
    ready=2,
    window_s=120,
    floor=2,
    hold=2,
    utilization=0.625,
    offered_slots=10.5,
    slots=16.0,
    flatness=0.934,
    known=True,
    regrets=1,
    spent_s=7200.0,
    saved_s=1800.0,
    why="<b>flatness</b> 0.93",
)


@contextmanager
def page_of(history: History, port: int) -> Iterator[str]:
    """Serves the page from a thread of its own."""
    settings = Settings(worker_image="w:1", pod_name="operator", page_port=port)
    loop, started, end = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with served(page_app(settings, history, lambda: "operator"), HOST, port):
            started.set()
            await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert started.wait(timeout=30)
    try:
        yield f"http://{HOST}:{port}/"
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()


def tell(history: History, name: str, *told: Figures) -> None:
    """Tells of a pool, one step after the other until now."""
    for place, figures in enumerate(told):
        at = time.time() - STEP_S * (len(told) - 1 - place)
        history.tell(PoolKey("team", name), replace(figures, at=at))


def test_hundreds_of_pools_are_listed_and_one_is_drawn(chromium: Browser, unused_tcp_port: int) -> None:
    history = History()
    for number in range(POOLS):
        tell(history, f"chat-{number}", FIGURES)
    with page_of(history, unused_tcp_port) as url:
        tab = PoolPage(chromium, url)
        tab.open()
        tab.page.get_by_label("Filter by name or namespace").fill("team chat-49")
        assert tab.page.locator("#list tbody tr:visible").count() == 11
        tab.choose("team", "chat-499")
        assert tab.page.locator("canvas").count() == 7
        assert tab.barriers() == []
        assert tab.complaints == tab.outside() == []


def test_figures_are_shown_as_they_are(chromium: Browser, unused_tcp_port: int) -> None:
    history = History()
    unknown = replace(FIGURES, utilization=None, flatness=None, known=False)
    tell(history, "chat", unknown, FIGURES, FIGURES)
    tell(
        history, "lost", replace(FIGURES, saved_s=-0.1, hold=None), replace(unknown, saved_s=-0.1, hold=None)
    )
    with page_of(history, unused_tcp_port) as url:
        tab = PoolPage(chromium, url)
        tab.open()
        assert tab.row("chat") == [
            "team",
            "chat",
            "62 %",
            "2 / 3",
            "120 s",
            "2",
            "0.93",
            "1",
            "0.50 h (20.0 %)",
        ]
        assert tab.row("lost")[2:] == [
            "unknown", "2 / 3", "120 s", "none", "unknown", "1", "0.00 h (0.0 %)"
        ]  # fmt: skip
        tab.choose("team", "chat")
        assert tab.facts()["why"] == "<b>flatness</b> 0.93"
        tab.page.get_by_text("Utilisation as a table").click()
        table = tab.page.get_by_role("region", name="Utilisation as a table").locator("tbody td")
        rows = wait_for(table.all_inner_texts, what="the table, which is made when it is opened", seconds=30)
        assert rows == ["62 %", "62 %", "unknown"]
        money = {name: tab.facts()[name] for name in MONEY}
        assert money == dict.fromkeys(MONEY, ""), "a pool without a price"
        assert not tab.page.get_by_text("Latency penalty", exact=True).first.is_visible()
        history.forget(PoolKey("team", "chat"))
        tab.page.get_by_text("Nothing is known of this pool.").wait_for(timeout=20_000)
        assert tab.page.locator("canvas").count() == 0
        assert tab.barriers() == []


def test_money_is_shown_of_a_pool_that_has_a_price(chromium: Browser, unused_tcp_port: int) -> None:
    history = History()
    priced = replace(FIGURES, spent="4.00 EUR", saved="1.00 EUR")
    tell(history, "chat", priced)
    late = replace(priced, first_token_p99_s=1.6, latency_penalty=1.12, weighted="4.48 EUR", saved="0.52 EUR")
    tell(history, "late", late)
    with page_of(history, unused_tcp_port) as url:
        tab = PoolPage(chromium, url)
        tab.open()
        assert [tab.row(name)[8] for name in ("chat", "late")] == [
            "0.50 h (20.0 %), 1.00 EUR",
            "0.50 h (20.0 %), 0.52 EUR",
        ]
        tab.choose("team", "late")
        assert {name: tab.facts()[name] for name in MONEY} == {
            "saved-money": "0.52 EUR",
            "spent": "4.00 EUR",
            "weighted": "4.48 EUR",
            "first-token": "1.6 s",
            "latency-penalty": "1.12",
        }
        tell(history, "late", replace(late, first_token_p99_s=None, latency_penalty=None))
        tab.page.locator("#newest-latency-penalty").wait_for(state="hidden", timeout=20_000)
        assert tab.facts()["weighted"] == "4.48 EUR"
        tell(history, "late", replace(late, first_token_p99_s=0.0495))
        tab.page.get_by_text("49.5 ms").wait_for(timeout=20_000)
        assert tab.barriers() == []
        assert tab.complaints == []


def test_no_pool_is_told_in_words(chromium: Browser, unused_tcp_port: int) -> None:
    with page_of(History(), unused_tcp_port) as url:
        tab = PoolPage(chromium, url)
        tab.open()
        assert "No pool is autoscaled" in tab.page.locator("#empty").inner_text()
        assert tab.barriers() == []
