"""Asking Prometheus about load, against servers in its place that misbehave."""

import asyncio
import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives import serialization

from zerolayer_dev.cluster.pki import Authority, Identity
from zerolayer_dev.testing import raw_http
from zerolayer_dev.testing.prometheus_answers import FLAT, Figure, body, flat, result
from zerolayer_dev.testing.raw_http import Request, drips, response, says, says_nothing, serving
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_dev.testing.worker_load import SteadyWorker
from zerolayer_operator.observe import prometheus
from zerolayer_operator.observe.load import SPAN_S, STEP_S, ObservedLoad
from zerolayer_operator.observe.load_source import LoadTarget, Worker
from zerolayer_operator.observe.prometheus import Access, PrometheusLoad
from zerolayer_operator.observe.prometheus_http import LIMIT_BYTES, _Deadline
from zerolayer_operator.observe.scrape import Scraper
from zerolayer_operator.observe.scraped_load import ScrapedLoad

NOW = 1_800_000_000.0
HOST = "127.0.0.1"
TARGET = LoadTarget("ns", "pool", "rev", (Worker("w", HOST, NOW - 5000), Worker("v", HOST, NOW - 5000)))


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


@pytest.fixture
async def own() -> AsyncIterator[ScrapedLoad]:
    """The operator's own figures: none, as nobody listens at the workers' addresses."""
    scraper = Scraper(1)
    yield ScrapedLoad(scraper, lambda: NOW)
    await scraper.close()


class Prometheus:
    """Answers range queries with made-up figures, and notes what it was asked."""

    def __init__(self, of: Figure = flat) -> None:
        self.of = of
        self.asked: list[Request] = []

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.asked.append(request)
        wanted = self.query(-1)
        rows = result(int(wanted["start"]), int(wanted["end"]), self.of)
        writer.write(response(body(rows), content_type="application/json"))

    def query(self, which: int) -> dict[str, str]:
        """One of the questions."""
        query = parse_qs(urlsplit(self.asked[which].target).query)
        return {name: values[0] for name, values in query.items()}


async def ask(
    access: Access | str,
    own: ScrapedLoad,
    threads: ThreadPoolExecutor,
    *,
    timeout_s: float = 20.0,
    now: float = NOW,
) -> ObservedLoad:
    access = Access(access) if isinstance(access, str) else access
    source = PrometheusLoad(access, own, threads, timeout_s=timeout_s, clock=lambda: now)
    await source.refresh(TARGET)
    return source.load(TARGET)


async def test_an_hour_of_one_revision_is_asked_for(own: ScrapedLoad, threads: ThreadPoolExecutor) -> None:
    server = Prometheus()
    async with serving(server) as port:
        load = await ask(f"http://{HOST}:{port}/prefix/", own, threads, now=NOW + 4)
    assert load.unknown is None
    assert load.slots_per_pod == FLAT["slots"]
    assert [load.samples[0].at, load.samples[-1].at] == [NOW - SPAN_S, NOW]
    (request,) = server.asked
    assert request.target.startswith("/prefix/api/v1/query_range?")
    assert "authorization" not in request.headers
    query = server.query(0)
    assert (query["end"], query["step"], query["partial_response"]) == (str(int(NOW)), "15", "false")
    assert 'zerolayer_dev_pool="pool",zerolayer_dev_revision="rev"' in query["query"]


async def test_what_is_known_is_not_asked_for_again(own: ScrapedLoad, threads: ThreadPoolExecutor) -> None:
    server, now = Prometheus(), NOW
    async with serving(server) as port:
        source = PrometheusLoad(Access(f"http://{HOST}:{port}"), own, threads, clock=lambda: now)
        for _ in range(3):
            await source.refresh(TARGET)
            now += STEP_S
        asked = [int(query["end"]) - int(query["start"]) for query in map(server.query, range(3))]
        assert asked == [SPAN_S, 300, 300]
        now -= STEP_S
        load = source.load(TARGET)
        assert len(load.samples) == SPAN_S // STEP_S + 1
        assert load.samples[-1].at == now
        now += 1000
        await source.refresh(TARGET)
        other = LoadTarget("ns", "pool", "other", TARGET.workers)
        await source.refresh(other)
        source.forget("ns", "pool")
        await source.refresh(other)
        assert [int(query["end"]) - int(query["start"]) for query in map(server.query, range(3, 6))] == [
            SPAN_S
        ] * 3


BODY = body(result(int(NOW) - SPAN_S, int(NOW)))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(response(BODY, 500), "answers 500; check", id="500"),
        pytest.param(response(b'{"error": "busy\\n now"}', 503), "answers 503 (busy now); check", id="503"),
        pytest.param(response(b"[" * 100_000, 422), "answers 422; check", id="422"),
        pytest.param(response(BODY, 404), "answers 404; check its address, path included", id="404"),
        pytest.param(response(BODY, 401), "refuses the operator (401); check the bearer token", id="401"),
        pytest.param(response(BODY, 302, location="http://127.0.0.2:1/"), "answers 302", id="redirect"),
        pytest.param(response(b"<html></html>"), "no answer to a query", id="HTML"),
        pytest.param(response(b""), "no answer to a query", id="empty"),
        pytest.param(response(b"[" * 100_000), "no answer to a query", id="deep"),
        pytest.param(response(b"\xff\xfe"), "no answer to a query", id="no text"),
        pytest.param(response(b'{"data": []}'), "no answer to a query", id="other JSON"),
        pytest.param(response(b"[]"), "no answer to a query", id="list"),
        pytest.param(response(body({"a": 1})), "no answer to a query", id="other result"),
        pytest.param(response(body([{"metric": {}, "values": []}])), "no answer to a", id="other series"),
        pytest.param(response(BODY, content_encoding="gzip"), "", id="said to be compressed"),
        pytest.param(response(b" " * LIMIT_BYTES + BODY), "more than 1048576 bytes", id="huge"),
        pytest.param(b"no HTTP at all\r\n\r\n", "can't be reached", id="no HTTP"),
        pytest.param(b"", "can't be reached", id="closed at once"),
        pytest.param(response(BODY)[:-50], "no answer to a query", id="closed in between"),
    ],
)  # fmt: skip
async def test_answers_that_are_none(
    content: bytes, said: str, own: ScrapedLoad, threads: ThreadPoolExecutor
) -> None:
    async with serving(says(content)) as port:
        load = await ask(f"http://{HOST}:{port}", own, threads)
    if said:
        assert str(load.unknown).startswith(f"Prometheus at http://{HOST}:{port} ")
        assert said in str(load.unknown)
    else:
        assert load.unknown is None


async def test_a_token_that_is_quoted_stays_secret(own: ScrapedLoad, threads: ThreadPoolExecutor) -> None:
    async def quote(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response(json.dumps({"error": request.headers["authorization"]}).encode(), 400))

    async with serving(quote) as port:
        load = await ask(Access(f"http://{HOST}:{port}", token="ab"), own, threads)
    assert "answers 400 (Bearer [redacted]); check" in str(load.unknown)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:1", "can't be reached (ConnectionError)"),
        ("http://no.such.host.invalid:9090", "can't be reached (ConnectionError)"),
        ("http://", "can't be reached (InvalidURL)"),
        ("ftp://127.0.0.1/", "can't be reached"),
    ],
)
async def test_nobody_is_there(
    address: str, said: str, own: ScrapedLoad, threads: ThreadPoolExecutor
) -> None:
    load = await ask(address, own, threads)
    assert said in str(load.unknown)


HANGING = [
    pytest.param(says_nothing, id="silent"),
    pytest.param(drips(response(BODY), 0.02), id="dripping"),
    pytest.param(drips(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 60_000, 0.02), id="dripping head"),
    pytest.param(drips(b"H" * 60_000, 0.02), id="dripping status"),
]


@pytest.mark.parametrize("answer", HANGING)
async def test_a_hanging_prometheus_is_given_up_and_frees_its_thread(
    answer: raw_http.Answer, own: ScrapedLoad
) -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as single:
        async with serving(answer) as port:
            load = await ask(f"http://{HOST}:{port}", own, single, timeout_s=0.5)
            assert "gives no answer within 0.5 s; look whether it is overloaded" in str(load.unknown)
            # While the server still hangs; a byte every 20 ms of all there are would take minutes.
            async with asyncio.timeout(10):
                await loop.run_in_executor(single, lambda: None)


def test_a_connection_that_is_made_too_late_is_broken_off() -> None:
    here, there = socket.socketpair()
    with here, there, _Deadline(0.0) as deadline:
        wait_for(lambda: deadline.over, what="the deadline", seconds=20, interval=0.001)
        deadline.watch(here)
        there.settimeout(20)
        assert there.recv(1) == b""


@pytest.mark.parametrize("answer", HANGING)
async def test_the_event_loop_goes_on_while_prometheus_hangs(
    answer: raw_http.Answer, own: ScrapedLoad, threads: ThreadPoolExecutor
) -> None:
    """Another task keeps its pace all the while; a blocked loop would stand still for two seconds."""
    await ask("http://127.0.0.1:1", own, threads)  # what is imported on first use is imported now
    turns: list[float] = []
    over = asyncio.Event()

    async def pace() -> None:
        while not over.is_set():
            turns.append(time.monotonic())
            await asyncio.sleep(0.005)

    task = asyncio.create_task(pace())
    async with serving(answer) as port:
        await asyncio.gather(*(ask(f"http://{HOST}:{port}", own, threads, timeout_s=2.0) for _ in range(4)))
    over.set()
    await task
    assert turns[-1] - turns[0] > 1.5
    assert max(after - before for before, after in pairwise(turns)) < 1.0


async def test_one_that_hangs_is_left_alone_for_a_while(
    own: ScrapedLoad, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of pools that share it must not each wait for it in turn."""
    asked = 0

    async def hang(request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await says_nothing(request, writer)

    async with serving(hang) as port:
        source = PrometheusLoad(
            Access(f"http://{HOST}:{port}"), own, threads, timeout_s=0.5, clock=lambda: NOW
        )
        targets = [LoadTarget("ns", f"pool-{number}", "rev", TARGET.workers) for number in range(40)]
        began = time.monotonic()
        await asyncio.gather(*(source.refresh(target) for target in targets))
        assert time.monotonic() - began < 8
        assert asked <= prometheus.CONCURRENCY
        assert all("no answer within" in str(source.load(target).unknown) for target in targets)
        monkeypatch.setattr(prometheus, "PAUSE_S", 0.0)
        source._late_until = 0.0
        await source.refresh(targets[0])
        assert asked <= prometheus.CONCURRENCY + 1


async def test_the_token_goes_to_prometheus_and_nowhere_else(
    own: ScrapedLoad, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine {HOST} login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    elsewhere = Prometheus()
    async with serving(elsewhere) as other:
        server = Prometheus()
        async with serving(server) as port:
            access = Access(f"http://{HOST}:{port}", token="s3cret")
            assert (await ask(access, own, threads)).unknown is None
        assert server.asked[0].headers["authorization"] == "Bearer s3cret"
        moved = response(b"", 307, location=f"http://{HOST}:{other}/api/v1/query_range")
        async with serving(says(moved)) as port:
            load = await ask(Access(f"http://{HOST}:{port}", token="s3cret"), own, threads)
    assert "answers 307" in str(load.unknown)
    assert elsewhere.asked == []
    assert "s3cret" not in repr(access)


@pytest.mark.parametrize("token", ["line\nbreak", "\u20ac"])
async def test_a_token_that_is_none_is_told_without_it(
    token: str, own: ScrapedLoad, threads: ThreadPoolExecutor
) -> None:
    async with serving(Prometheus()) as port:
        load = await ask(Access(f"http://{HOST}:{port}", token=token), own, threads)
    assert load.unknown is not None
    assert token not in load.unknown


async def test_the_authority_that_is_named_is_the_only_one(
    own: ScrapedLoad, threads: ThreadPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, other = Authority("good"), Authority("other")
    certificate, key = good.issue(Identity("server", "prometheus", hosts=(HOST,)))
    (tmp_path / "crt").write_bytes(certificate)
    (tmp_path / "key").write_bytes(key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    found = {}
    async with serving(Prometheus(), tls) as port:
        for name, authority in {"good": good, "other": other, "public": None}.items():
            ca = None if authority is None else _pem(authority)
            found[name] = (await ask(Access(f"https://{HOST}:{port}", ca=ca), own, threads)).unknown
        (tmp_path / "public").write_text(_pem(good))
        monkeypatch.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", str(tmp_path / "public"))
        for name, ca in {"now public": None, "public and other": _pem(other)}.items():
            found[name] = (await ask(Access(f"https://{HOST}:{port}", ca=ca), own, threads)).unknown
        found["bad"] = (await ask(Access(f"https://{HOST}:{port}", ca="nonsense"), own, threads)).unknown
    assert found["good"] is None
    assert found["now public"] is None
    for name in ("other", "public", "public and other"):
        assert "has a certificate that is not trusted; name the CA" in str(found[name])
    assert "is no certificate" in str(found["bad"])


ENCRYPTED = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"


async def test_the_operators_own_certificate_is_shown(
    own: ScrapedLoad, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    authority = Authority("one")
    for name in ("server", "client"):
        certificate, key = authority.issue(Identity(name, name, hosts=(HOST,) if name == "server" else ()))
        (tmp_path / name).write_bytes(certificate + key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=_pem(authority))
    tls.load_cert_chain(tmp_path / "server")
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.maximum_version = ssl.TLSVersion.TLSv1_2  # which tells a client within the handshake
    pair = (tmp_path / "client").read_text()
    shown = {
        "pair": pair,
        "none": None,
        "text": "x",
        "no key": _pem(authority),
        "encrypted": _pem(authority) + ENCRYPTED,
    }
    found = {}
    async with serving(Prometheus(), tls) as port:
        for name, certificate in shown.items():
            access = Access(f"https://{HOST}:{port}", ca=_pem(authority), certificate=certificate)
            found[name] = str((await ask(access, own, threads)).unknown)
    assert found.pop("pair") == "None"
    assert "refuses the TLS connection; check whether it wants a certificate" in found.pop("none")
    assert all("what is to be the operator's certificate is none" in said for said in found.values())
    assert "PRIVATE" not in repr(access)


def _pem(authority: Authority) -> str:
    return authority.certificate.public_bytes(serialization.Encoding.PEM).decode()


async def test_where_prometheus_is_away_the_operators_own_figures_remain(threads: ThreadPoolExecutor) -> None:
    now = NOW
    worker = SteadyWorker(began=NOW - 1000)

    async def metrics(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response(worker.metrics(now).encode()))

    target = LoadTarget("ns", "pool", "rev", (Worker("w", HOST, NOW - 5000),))
    async with serving(metrics) as port:
        scraper = Scraper(port)
        source = PrometheusLoad(
            Access("http://127.0.0.1:1"), ScrapedLoad(scraper, lambda: now), threads, clock=lambda: now
        )
        for _ in range(6):
            await source.refresh(target)
            now += STEP_S
        now -= STEP_S
        await scraper.close()
    load = source.load(target)
    assert "can't be reached" in str(load.unknown)
    assert load.samples[-1].counted is not None
    assert load.samples[-1].counted.scaled(1).busy_s == pytest.approx(2)


def test_nothing_that_is_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, zerolayer_operator.observe.prometheus, json; "
        "print(json.dumps([name for name in sys.modules if name.startswith('prometheus_api_client')]))"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert json.loads(said) == []
