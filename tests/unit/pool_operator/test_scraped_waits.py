"""How long requests wait for their first token, as the operator learns it scrape by scrape."""

import asyncio
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from zerolayer_dev.testing.raw_http import Request, response, serving
from zerolayer_dev.testing.worker_load import SteadyWorker
from zerolayer_operator.observe.first_tokens import Waits
from zerolayer_operator.observe.load import SPAN_S, STALE_S, STEP_S
from zerolayer_operator.observe.load_log import Answer, LoadLog
from zerolayer_operator.observe.load_source import LoadTarget, Worker
from zerolayer_operator.observe.scrape import Scraper
from zerolayer_operator.observe.scraped_load import ScrapedLoad
from zerolayer_operator.observe.worker_metrics import WorkerMetricsError, read_counters

START = 1_800_000_000.0
TARGET = LoadTarget(
    "ns", "pool", "rev", tuple(Worker(name, name, START - 1000) for name in "ab"), first_tokens=True
)
SILENT = WorkerMetricsError("it gives no answer")


class Served:
    """A worker with a histogram like the real one's."""

    def __init__(self, arrivals: float = 1.0, began: float = START - 500) -> None:
        self._load = SteadyWorker(arrivals=arrivals, began=began)
        self._registry = CollectorRegistry()
        self._histogram = Histogram(
            "zero_layer_time_to_first_token_seconds",
            "Times.",
            ["route"],
            buckets=(0.5, 1, 2),
            registry=self._registry,
        )

    def first_token(self, seconds: float, requests: int, route: str = "messages") -> None:
        for _ in range(requests):
            self._histogram.labels(route).observe(seconds)

    def text(self, now: float) -> str:
        return generate_latest(self._registry).decode() + self._load.metrics(now)

    def counted(self, now: float) -> Answer:
        return read_counters(self.text(now), first_tokens=True)


def scraped(log: LoadLog, workers: dict[str, Answer | Served], first: int, last: int) -> float:
    """The instant of the last of some scrapes, a step apart."""
    now = START
    for number in range(first, last + 1):
        now = START + STEP_S * number
        answers = {
            ip: item.counted(now) if isinstance(item, Served) else item for ip, item in workers.items()
        }
        log.add(now, TARGET, answers)
    return now


@pytest.fixture
def log() -> LoadLog:
    return LoadLog()


def test_of_all_workers_and_routes_of_the_last_minute(log: LoadLog) -> None:
    one, two = Served(), Served()
    one.first_token(1.5, 1000)
    scraped(log, {"a": one, "b": two}, 0, 0)
    one.first_token(0.2, 49)
    one.first_token(0.2, 49, "chat")
    two.first_token(0.7, 2)
    now = scraped(log, {"a": one, "b": two}, 1, 4)
    # 98 of 100 within half a second, the other two within one; what was before is nothing of this minute.
    assert log.waits(now, TARGET) == Waits(pytest.approx(0.75))
    now = scraped(log, {"a": one, "b": two}, 5, 8)
    assert log.waits(now, TARGET) is None, "requests came, and none has got its first token"


def test_nobody_waits_where_nobody_asks(log: LoadLog) -> None:
    now = scraped(log, {"a": Served(0), "b": Served(0)}, 0, 4)
    assert log.waits(now, TARGET) == Waits(None)


def test_not_known_before_a_minute_and_not_from_figures_that_are_old(log: LoadLog) -> None:
    assert log.waits(START, TARGET) is None
    one = Served()
    scraped(log, {"a": one, "b": Served(0)}, 0, 0)
    one.first_token(0.7, 10)
    assert log.waits(scraped(log, {"a": one, "b": Served(0)}, 1, 2), TARGET) is None
    now = scraped(log, {"a": one, "b": Served(0)}, 3, 4)
    assert log.waits(now, TARGET) == Waits(pytest.approx(0.995))
    assert log.waits(now + STALE_S + 1, TARGET) is None
    assert log.waits(now, replace(TARGET, workers=())) is None


def test_a_worker_that_says_nothing_may_be_the_one_that_lets_wait(log: LoadLog) -> None:
    now = scraped(log, {"a": Served(0), "b": SILENT}, 0, 8)
    assert log.load(now, TARGET, SPAN_S).unknown is not None
    assert log.waits(now, TARGET) is None


def test_a_worker_that_began_anew_tells_of_what_it_did_since(log: LoadLog) -> None:
    one = Served()
    one.first_token(1.5, 10)
    scraped(log, {"a": one, "b": Served(0)}, 0, 3)
    anew = Served(began=START + 50)
    anew.first_token(0.7, 4)
    now = scraped(log, {"a": anew, "b": Served(0)}, 4, 4)
    assert log.waits(now, TARGET) == Waits(pytest.approx(0.995))


def test_not_known_until_it_is_asked_for(log: LoadLog) -> None:
    """Nor where the histogram is missing from the first of a minute's scrapes."""
    worker = Served(0)
    plain: dict[str, Answer | Served] = dict.fromkeys("ab", read_counters(worker.text(START)))
    now = scraped(log, plain, 0, 8)
    assert log.load(now, TARGET, SPAN_S).unknown is None
    assert log.waits(now, TARGET) is None
    now = scraped(log, {"a": worker, "b": worker}, 9, 11)
    assert log.waits(now, TARGET) is None
    now = scraped(log, {"a": worker, "b": worker}, 12, 13)
    assert log.waits(now, TARGET) == Waits(None)
    assert log.waits(now, replace(TARGET, first_tokens=False)) is None


@pytest.mark.parametrize("first_tokens", [True, False])
async def test_workers_are_asked_once_for_all_of_it(*, first_tokens: bool) -> None:
    worker, asked, clock = Served(), [0], [START]

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        asked[0] += 1
        writer.write(response(worker.text(clock[0]).encode()))

    async with serving(answer) as port:
        scraper = Scraper(port, timeout_s=20)
        load = ScrapedLoad(scraper, lambda: clock[0])
        target = LoadTarget("ns", "pool", "rev", (Worker("a", "127.0.0.1", START - 1000),), first_tokens)
        for _ in range(5):
            await load.refresh(target)
            worker.first_token(1.5, 1)
            clock[0] += STEP_S
        await scraper.close()
    assert asked == [5]
    assert load.waits(target) == (Waits(pytest.approx(1.99)) if first_tokens else None)
