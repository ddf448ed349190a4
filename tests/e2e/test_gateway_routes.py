"""The real Traefik leads requests by the routes that the operator builds."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest
from scipy import stats

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.images import specs
from zerolayer_dev.testing.echo_server import LAST_LINE
from zerolayer_dev.testing.echo_workers import EchoWorkers, ask
from zerolayer_dev.testing.gateway import Gateway
from zerolayer_dev.testing.observed_routes import gateway as gateway_spec
from zerolayer_dev.testing.observed_routes import routed
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator.build.routes import http_route
from zerolayer_operator.build.services import revision_service
from zerolayer_operator.decide.traffic import Pinned, Traffic

pytestmark = pytest.mark.promise("gateway-routes")

BLUE, GREEN = "b" * 10, "c" * 10
PINNED = (Pinned(BLUE, "v1"), Pinned(GREEN, "v2"))
CANARY = Traffic(BLUE, GREEN, 10, PINNED)
REQUESTS = 2000
STREAM_LINES, PAUSE_S = 60, 0.1
SETTLED_S = 5.0


@dataclass
class Asker:
    """Clients that ask one request after the other and name nothing; answers and when they were asked for."""

    url: str
    answers: list[tuple[float, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def ask_on(self) -> None:
        with httpx.Client(base_url=self.url, timeout=30, trust_env=False) as client:
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    name = client.get("/").raise_for_status().json()["name"]
                except httpx.HTTPError as error:
                    self.failures.append(repr(error))
                else:
                    self.answers.append((began, name))

    def stop(self) -> None:
        self._stop.set()

    def wait_for_more(self, count: int) -> None:
        wanted = len(self.answers) + count
        wait_for(lambda: len(self.answers) >= wanted, what=f"{count} more answers", seconds=60)


@pytest.fixture(scope="module")
def workers(cluster: Cluster, make_namespace: Callable[[str], str]) -> EchoWorkers:
    """Two workers of the old revision, one of the new."""
    made = EchoWorkers(cluster, make_namespace("restricted"), "pool", specs.reference("operator"))
    made.start({BLUE: 2, GREEN: 1})
    observed = replace(routed(BLUE, GREEN), namespace=made.namespace)
    services = [orphan(revision_service(observed, revision)) for revision in (BLUE, GREEN)]
    cluster.kubectl(
        "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": services})
    )
    return made


@pytest.fixture
def route(workers: EchoWorkers, traefik: Gateway) -> Callable[[Traffic], float]:
    """Has the gateway lead requests like this, and returns when the API server knew of it."""
    observed = replace(routed(BLUE, GREEN), namespace=workers.namespace)
    parents = gateway_spec(parentRefs=[traefik.parent_ref])
    return lambda traffic: traefik.attach(orphan(http_route(observed, parents, traffic)))


@pytest.fixture
def asker(traefik: Gateway, route: Callable[[Traffic], float]) -> Iterator[Asker]:
    """Two clients that ask all along, of a canary."""
    route(CANARY)
    asking = Asker(traefik.url)
    with ThreadPoolExecutor(2) as clients:
        running = [clients.submit(asking.ask_on) for _ in range(2)]
        yield asking
        asking.stop()
        for client in running:
            client.result()


def orphan(body: dict[str, Any]) -> dict[str, Any]:
    """The object without its owner, which is not there: the garbage collector would take it away."""
    del body["metadata"]["ownerReferences"]
    return body


def test_weights_are_those_of_the_route(traefik: Gateway, route, figures) -> None:
    """Of requests that name nothing the canary's share is within the 99.9 % interval of its weight."""
    for weight in (10, 35):
        route(replace(CANARY, weight=weight))
        answers = ask(traefik.url, REQUESTS)
        low, high = stats.binom.interval(0.999, REQUESTS, weight / 100)
        figures(weight=weight, requests=answers.total(), canary=answers[GREEN], low=int(low), high=int(high))

        assert answers.total() == REQUESTS
        assert low <= answers[GREEN] <= high


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({"zero-layer-revision": BLUE}, BLUE),
        ({"zero-layer-revision": GREEN}, GREEN),
        ({"zero-layer-anchor": "v1"}, BLUE),
        ({"zero-layer-anchor": "v2"}, GREEN),
        ({"zero-layer-revision": GREEN, "zero-layer-anchor": "v1"}, GREEN),
    ],
    ids=["old revision", "new revision", "old version", "new version", "the revision before the version"],
)
def test_named_requests_stay(
    traefik: Gateway, route, figures, named: Mapping[str, str], expected: str
) -> None:
    """Every request that names a revision or a version is answered by the one that has it."""
    for traffic in (CANARY, Traffic(GREEN, pinned=PINNED)):
        route(traffic)
        answers = ask(traefik.url, 200, named)
        figures(named=",".join(named), serving=traffic.serving[0], requests=answers.total())

        assert answers == {expected: 200}


def test_name_of_what_is_gone_is_no_name(traefik: Gateway, route) -> None:
    """A request that names a revision that is no longer served is answered by the one that serves."""
    route(Traffic(GREEN))

    assert ask(traefik.url, 50, {"zero-layer-revision": BLUE, "zero-layer-anchor": "v1"}) == {GREEN: 50}


def test_changes_cost_no_request_and_no_stream(traefik: Gateway, route, asker: Asker, figures) -> None:
    """Changes of weights and the switch fail no request and cut no stream; soon the old one gets no more."""
    with ThreadPoolExecutor(4) as streams:
        begun = [
            streams.submit(stream, traefik.url, named)
            for named in ({}, {}, {"zero-layer-revision": BLUE}, {"zero-layer-revision": GREEN})
        ]
        asker.wait_for_more(20)
        for traffic in (replace(CANARY, weight=50), Traffic(GREEN, pinned=PINNED)):
            switched = route(traffic)
            asker.wait_for_more(50)
        wait_for(lambda: time.monotonic() > switched + SETTLED_S, what="the switch to settle", seconds=30)
        asker.wait_for_more(50)
        asker.stop()
        lines = [one.result() for one in begun]
    late = [name for began, name in asker.answers if began > switched + SETTLED_S]
    last_blue = max(began for began, name in asker.answers if name == BLUE)
    figures(
        requests=len(asker.answers),
        failed=len(asker.failures),
        streams=len(lines),
        lines=sum(map(len, lines)),
        asked_of_the_old_for_s=round(max(0.0, last_blue - switched), 2),
    )

    assert asker.failures == []
    assert all(one[-1] == LAST_LINE and len(one) == STREAM_LINES + 1 for one in lines), lines
    assert set(late) == {GREEN}


def test_only_worker_of_a_canary_may_end(workers: EchoWorkers, asker: Asker, figures) -> None:
    """The deletion of a canary's only worker fails no request while its successor starts."""
    asker.wait_for_more(20)
    workers.replace(GREEN)
    asker.wait_for_more(50)
    asker.stop()
    figures(requests=len(asker.answers), failed=len(asker.failures))

    assert asker.failures == []
    assert {name for _, name in asker.answers[-50:]} == {BLUE, GREEN}


def stream(url: str, named: Mapping[str, str]) -> list[str]:
    """The lines of one long answer."""
    path = f"{url}/stream?lines={STREAM_LINES}&pause={PAUSE_S}"
    with httpx.stream("GET", path, headers=dict(named), timeout=30, trust_env=False) as response:
        response.raise_for_status()
        return list(response.iter_lines())
