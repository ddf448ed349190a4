"""The load of a pool, from workers' counters through a real Prometheus to the offered load.

Workers are simulated in virtual time, with the worker's own account of its load; what they count is served
with the times at which they counted it, so that Prometheus has the better part of an hour within seconds.
"""

import random
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import pytest

from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_dev.testing.simulated_workers import Exporter, Phase, SimulatedWorker, arrivals
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator.decide.offered_load import offered_slots
from zerolayer_operator.observe.load import STEP_S, ObservedLoad
from zerolayer_operator.observe.load_source import LoadTarget, Worker
from zerolayer_operator.observe.prometheus import Access, PrometheusLoad
from zerolayer_operator.observe.scrape import Scraper
from zerolayer_operator.observe.scraped_load import ScrapedLoad

SLOTS, SERVICE_S, SPAN_S, REPLACED_S = 8, 4.0, 3000, 2100
QUIET, OVERLOAD, AFTER = Phase(0, 1200, 4.0), Phase(1200, 1500, 24.0), Phase(1500, SPAN_S + 600, 6.0)
FIRST, REPLACED, SUCCESSOR, FOREIGN = "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"


@dataclass(frozen=True)
class Stage:
    """Prometheus, full of the pool's figures, and who told it them."""

    began: float
    exporter: Exporter
    prometheus: Prometheus

    @property
    def target(self) -> LoadTarget:
        """The pool as it is now."""
        first = Worker("first", FIRST, self.began)
        successor = Worker("successor", SUCCESSOR, self.began + REPLACED_S)
        return LoadTarget("ns", "pool", "rev", (first, successor))


def workers(began: float) -> dict[str, SimulatedWorker]:
    """Two of the pool, of which one is replaced, and one of another revision."""
    came = [began + at for at in arrivals((QUIET, OVERLOAD, AFTER), SERVICE_S, random.Random(4))]
    change = began + REPLACED_S
    early, late = [at for at in came[1::2] if at < change], [at for at in came[1::2] if at >= change]
    return {
        FIRST: SimulatedWorker(SLOTS, SERVICE_S, came[::2], began),
        REPLACED: SimulatedWorker(SLOTS, SERVICE_S, early, began, change),
        SUCCESSOR: SimulatedWorker(SLOTS, SERVICE_S, late, change),
        FOREIGN: SimulatedWorker(SLOTS, SERVICE_S, came, began),
    }


@pytest.fixture(scope="module")
def stage(prometheus: Prometheus) -> Iterator[Stage]:
    began = time.time() - SPAN_S
    pool = {"namespace": "ns", "zerolayer_dev_pool": "pool", "zerolayer_dev_revision": "rev"}
    labels = {
        FIRST: {**pool, "pod": "first"},
        REPLACED: {**pool, "pod": "replaced"},
        SUCCESSOR: {**pool, "pod": "successor"},
        FOREIGN: {**pool, "pod": "foreign", "zerolayer_dev_revision": "other"},
    }
    with Exporter(workers(began), STEP_S) as exporter:
        prometheus.start({f"{host}:{exporter.port}": those for host, those in labels.items()}, "100ms")
        wait_for(lambda: exporter.caught_up, what="Prometheus to have scraped it all", seconds=240)
        yield Stage(began, exporter, prometheus)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


@dataclass
class Source:
    """The operator's source of load, with a clock that a test may set."""

    stage: Stage
    own: ScrapedLoad
    load: PrometheusLoad
    now: float

    async def minutes_of_its_own(self) -> None:
        """Has the operator ask the workers themselves for the last minutes."""
        present = self.now
        for back in range(8, 0, -1):
            self.now = self.stage.exporter.now = present - back * STEP_S
            await self.own.refresh(self.stage.target)
        self.now = present

    async def ask(self, target: LoadTarget | None = None) -> ObservedLoad:
        """Asks Prometheus and the workers, and returns the load."""
        target = target or self.stage.target
        self.stage.exporter.now = self.now
        await self.load.refresh(target)
        return self.load.load(target)


@pytest.fixture
async def source(stage: Stage, threads: ThreadPoolExecutor) -> AsyncIterator[Source]:
    scraper = Scraper(stage.exporter.port)
    own = ScrapedLoad(scraper, lambda: made.now)
    access = Access(stage.prometheus.url)
    load = PrometheusLoad(access, own, threads, timeout_s=10.0, clock=lambda: made.now)
    made = Source(stage, own, load, time.time())
    yield made
    await scraper.close()


async def test_the_offered_load_is_what_was_offered(source: Source) -> None:
    await source.minutes_of_its_own()
    load = await source.ask()
    assert load.unknown is None
    assert load.slots_per_pod == SLOTS
    offered = dict(
        zip((s.at - source.stage.began for s in load.samples), offered_slots(load.samples), strict=True)
    )

    def mean(begin: float, end: float) -> float:
        values = [value for at, value in offered.items() if begin <= at <= end]
        known = [value for value in values if value is not None]
        assert len(known) >= len(values) - 1
        return fmean(known)

    means = {"quiet": mean(120, 1200), "overload": mean(1290, 1500), "after": mean(2300, SPAN_S)}
    assert means["quiet"] == pytest.approx(QUIET.offered, rel=0.1)
    assert means["overload"] == pytest.approx(OVERLOAD.offered, rel=0.1)
    assert means["after"] == pytest.approx(AFTER.offered, rel=0.1)
    assert {
        s.ready for s in load.samples if not REPLACED_S <= s.at - source.stage.began <= REPLACED_S + 60
    } == {2}
    shares = [s.busy_share for s in load.samples if s.busy_share is not None]
    assert max(shares) == pytest.approx(1.0, abs=0.02)
    assert fmean(shares[10:70]) == pytest.approx(QUIET.offered / (2 * SLOTS), rel=0.15)


async def test_figures_that_the_workers_contradict_are_unknown(source: Source) -> None:
    source.stage.exporter.factor = 0.01
    try:
        await source.minutes_of_its_own()
        load = await source.ask()
    finally:
        source.stage.exporter.factor = 1.0
    assert load.unknown is not None
    assert "over 3 times more than the workers' own" in load.unknown


async def test_figures_of_some_workers_alone_are_unknown(source: Source) -> None:
    more = Worker("third", "127.0.0.5", source.stage.began)
    target = LoadTarget("ns", "pool", "rev", (*source.stage.target.workers, more))
    load = await source.ask(target)
    assert load.unknown is not None
    assert "no figures of some of the pool's workers" in load.unknown


async def test_old_figures_are_unknown(source: Source) -> None:
    source.now = time.time() + 90
    load = await source.ask()
    assert load.unknown is not None
    assert "newer than 45 s" in load.unknown
    assert load.samples


async def test_a_pool_that_nobody_scrapes_is_unknown(source: Source) -> None:
    ready = tuple(Worker(name, FIRST, source.stage.began) for name in ("a", "b"))
    load = await source.ask(LoadTarget("ns", "unheard-of", "rev", ready))
    assert load.unknown is not None
    assert "no figures of the pool's workers" in load.unknown


async def test_prometheus_that_hangs_or_is_gone_is_told_and_comes_back(
    prometheus: Prometheus, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    alone = Prometheus(tmp_path)
    alone.start({}, "1s")
    scraper = Scraper(1)
    target = LoadTarget("ns", "pool", "rev", (Worker("w", FIRST, 0.0),))

    async def ask(timeout_s: float) -> str:
        load = PrometheusLoad(Access(alone.url), ScrapedLoad(scraper), threads, timeout_s=timeout_s)
        await load.refresh(target)
        return str(load.load(target).unknown)

    try:
        assert "no figures of the pool's workers" in await ask(20.0)
        alone.freeze()
        began = time.monotonic()
        assert "gives no answer within 1 s" in await ask(1.0)
        assert time.monotonic() - began < 15
        alone.thaw()
        assert "no figures of the pool's workers" in await ask(20.0)
        alone.stop()
        assert "can't be reached" in await ask(20.0)
    finally:
        alone.stop()
        await scraper.close()
