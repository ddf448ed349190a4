"""What the page's server answers, and to whom."""

import math
from collections.abc import AsyncIterator
from dataclasses import asdict, replace

import pytest
from aiohttp.test_utils import TestClient, TestServer

from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.page.history import COLUMNS, History
from zerolayer_operator.page.server import page_app
from zerolayer_operator.settings import Settings
from zerolayer_operator.workqueue import PoolKey

FIGURES = Figures(
    at=1_800_000_000.5,
    wanted=3,
    ready=2,
    window_s=120,
    floor=2,
    hold=2,
    utilization=0.625,
    known=True,
    spent_s=7200.0,
    saved_s=-60.0,
    why="flatness 0.93 over 20m: 180s → 120s",
)
SETTINGS = Settings(worker_image="w:1", pod_name="operator-a", pod_namespace="zerolayer-system")


@pytest.fixture
def history() -> History:
    made = History()
    made.tell(PoolKey("team", "chat"), FIGURES)
    return made


@pytest.fixture
async def client(history: History) -> AsyncIterator[TestClient]:
    async with TestClient(TestServer(page_app(SETTINGS, history, lambda: "operator-a"))) as opened:
        yield opened


async def test_leader_lists_pools_with_their_newest_figures(client: TestClient, history: History) -> None:
    history.tell(PoolKey("team", "audio"), replace(FIGURES, utilization=None))
    async with client.get("/api/v1/pools") as response:
        body = await response.json()
    pools = body.pop("pools")

    assert body == {
        "name": "operator-a",
        "namespace": "zerolayer-system",
        "port": 8082,
        "leader": "operator-a",
        "leading": True,
    }
    assert [pool["name"] for pool in pools] == ["audio", "chat"]
    assert pools[1] == {"namespace": "team", "name": "chat"} | asdict(FIGURES)
    assert pools[0]["utilization"] is None


@pytest.mark.parametrize("leader", ["operator-b", ""])
async def test_standby_says_who_leads(leader: str) -> None:
    app = page_app(SETTINGS, History(), lambda: leader)
    async with TestClient(TestServer(app)) as client, client.get("/api/v1/pools") as response:
        body = await response.json()

    assert (body["leading"], body["leader"], body["pools"]) == (False, leader, [])


async def test_series_of_a_pool(client: TestClient) -> None:
    async with client.get("/api/v1/pools/team/chat") as response:
        body = await response.json()

    assert body["newest"] == {"namespace": "team", "name": "chat"} | asdict(FIGURES)
    assert (body["start"], body["step_s"]) == (1_800_000_000, 30)
    assert set(body["columns"]) == set(COLUMNS)
    assert body["columns"]["utilization"] == [0.625]
    assert body["columns"]["offered_slots"] == [None]


async def test_what_is_no_number_is_not_known(client: TestClient, history: History) -> None:
    odd = replace(FIGURES, utilization=math.nan, saved_s=math.inf)
    history.tell(PoolKey("team", "chat"), odd)
    for path in ("/api/v1/pools", "/api/v1/pools/team/chat"):
        async with client.get(path) as response:
            text = await response.text()
            assert "NaN" not in text
            assert "Infinity" not in text


@pytest.mark.parametrize(
    "name",
    ["other", "team/other", "%2e%2e/chat", "team/chat%00", "a/%F0%9F%98%80", "team/chat%2F", "%FF/%FF"],
)
async def test_pool_that_is_not_known_is_not_found(client: TestClient, name: str) -> None:
    async with client.get(f"/api/v1/pools/{name}") as response:
        assert response.status == 404


@pytest.mark.parametrize(
    ("path", "kind", "part"),
    [
        ("/", "text/html", b'<html lang="en">'),
        ("/page.js", "text/javascript", b"refresh()"),
        ("/page.css", "text/css", b"prefers-color-scheme: dark"),
        ("/vendor/uPlot.iife.min.js", "text/javascript", b"uPlot"),
        ("/icon.svg", "image/svg+xml", b"<svg"),
    ],
)
async def test_page_and_its_files(client: TestClient, path: str, kind: str, part: bytes) -> None:
    async with client.get(path) as response:
        assert response.status == 200
        assert response.content_type == kind
        assert part in await response.read()


@pytest.mark.parametrize(
    "path", ["/server.py", "/static/page.js", "/..%2fserver.py", "/vendor/", "/index.html"]
)
async def test_no_other_file_is_given_out(client: TestClient, path: str) -> None:
    async with client.get(path) as response:
        assert response.status == 404


@pytest.mark.parametrize("path", ["/", "/page.js", "/api/v1/pools", "/api/v1/pools/a/b", "/nothing"])
async def test_every_answer_keeps_browsers_from_lending_it_to_others(client: TestClient, path: str) -> None:
    async with client.get(path) as response:
        policy = response.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Connection"] == "close"
        assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/api/v1/pools", "/api/v1/pools/team/chat"])
async def test_nothing_can_be_changed(client: TestClient, method: str, path: str) -> None:
    async with client.request(method, path) as response:
        assert response.status == 405
        assert response.headers["Connection"] == "close"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:9999", 200),
        ("127.0.0.1:8082", 200),
        ("[::1]:8082", 200),
        ("[::1]", 200),
        ("evil.example", 421),
        ("evil.example:8082", 421),
        ("localhost.evil.example", 421),
        ("localhost:80@evil.example", 421),
        ("127.0.0.1.evil.example:8082", 421),
        ("10.0.0.7:8082", 421),
        ("zerolayer.zerolayer-system.svc", 421),
        ("", 421),
    ],
)
async def test_only_the_loopback_address_is_answered_under_its_own_names(
    client: TestClient, host: str, status: int
) -> None:
    for path in ("/", "/page.js", "/api/v1/pools"):
        async with client.get(path, headers={"Host": host}) as response:
            assert response.status == status, path
            assert ("chat" in await response.text()) == (path == "/api/v1/pools" and status == 200)
