"""Ten times the load that a worker carries, at a rate that does not wait for its answers."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

BODY = {"max_tokens": 32, "temperature": 1, "messages": [{"role": "user", "content": "Tell a short story."}]}
"""Most answers to real requests are longer; the shorter they are, the more refusals come with each."""

KNEE_CLIENTS = (8, 16)
TIMES = 10
REFUSED_WITHIN_S = 0.05
GOODPUT = 0.9
GOODPUT_PER_CPU = 0.8
"""Refusals, ten times as many as answers, take CPU time of the worker's too; it must stay the small part."""

SLOWER = 1.5
GROWTH_BYTES = 200 * 2**20

pytestmark = [pytest.mark.promise("overload")]


@dataclass(frozen=True)
class Outcome:
    """What became of a load.

    Attributes:
        answers: complete ones per second, until all was over.
        tokens: pieces of text per second, until all was over.
        tokens_cpu: pieces of text per second of CPU time that the worker took, until all was over.
        cpu: CPU time that the worker took, in seconds.
        refused: seconds from a request's sending to its 429.
        others: requests that got neither an answer nor a 429.
        late: seconds that the generator sent requests late.
        first_token: seconds from the start of a request's turn to its first token, on average.
        inter_token: seconds between two tokens, on average.
        peak: bytes of resident memory at most.
    """

    answers: float
    tokens: float
    tokens_cpu: float
    cpu: float
    refused: list[float]
    others: int
    late: list[float]
    first_token: float
    inter_token: float
    peak: int


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def sums(worker: Any) -> dict[str, float]:
    """The sums and counts of the worker's histograms, on all routes together."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(worker.metrics()):
        for sample in family.samples:
            if family.type == "histogram" and not sample.name.endswith("_bucket"):
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def peak_memory(pid: int) -> Iterator[list[int]]:
    """Looks at a process' memory ten times a second."""
    peak, going = [resident(pid)], [True]

    def look() -> None:
        while going:
            peak[0] = max(peak[0], resident(pid))
            time.sleep(0.1)

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield peak
        finally:
            going.clear()
            looking.result()


def apply(worker: Any, seconds: float, **how: Any) -> Outcome:
    """Loads a worker from a process of its own, and waits until all is answered."""
    port = httpx.URL(worker.url).port
    load = {"port": port, "body": BODY | {"model": worker.model}, "seconds": seconds, **how}
    command = [sys.executable, "-m", "zerolayer_dev.testing.open_loop", json.dumps(load)]
    before, spent = sums(worker), cpu_seconds(worker.pid)
    with peak_memory(worker.pid) as peak:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=seconds + 120)
    spent = cpu_seconds(worker.pid) - spent
    grown = {name: value - before.get(name, 0.0) for name, value in sums(worker).items()}
    asked = json.loads(done.stdout)
    refused = [each for each in asked if each["status"] == 429]
    complete = [each for each in asked if each["complete"]]
    # Clients of a fixed number end their last request: a slow machine answers few within the time.
    ended = max(each["end"] for each in asked)

    def mean(name: str) -> float:
        return grown[f"{name}_sum"] / max(1.0, grown[f"{name}_count"])

    return Outcome(
        answers=len(complete) / ended,
        tokens=sum(len(each["tokens"]) for each in asked) / ended,
        tokens_cpu=sum(len(each["tokens"]) for each in asked) / spent,
        cpu=spent,
        refused=[each["head"] - each["sent"] for each in refused],
        others=len(asked) - len(refused) - len(complete) - sum(each["left"] for each in asked),
        late=[each["sent"] - each["due"] for each in asked],
        first_token=mean("gen_ai_server_time_to_first_token_seconds") - mean("zero_layer_queue_time_seconds"),
        inter_token=mean("zero_layer_inter_token_seconds"),
        peak=peak[0],
    )


def overload(
    worker: Any, figures: Callable[..., None], *, knee_s: float, seconds: float
) -> tuple[Outcome, ...]:
    """Loads the worker to its knee and far beyond; returns what came of either, best first."""
    apply(worker, 2, clients=KNEE_CLIENTS[0])
    began = resident(worker.pid)
    knees = [apply(worker, knee_s, clients=clients) for clients in KNEE_CLIENTS]
    best = max(knees, key=lambda each: each.tokens)
    calm = knees[0]
    over = apply(worker, seconds, rate=TIMES * best.answers)
    figures(
        seconds=seconds,
        best_answers_s=round(best.answers, 2),
        best_tokens_s=round(best.tokens, 1),
        offered_s=round(TIMES * best.answers, 1),
        goodput=f"{over.tokens / best.tokens:.0%}",
        goodput_per_cpu=f"{over.tokens_cpu / best.tokens_cpu:.0%}",
        refused=len(over.refused),
        refusal_cpu_ms=round(
            1000 * over.cpu * (1 - over.tokens_cpu / best.tokens_cpu) / len(over.refused), 2
        ),
        refused_p50_ms=round(1000 * statistics.median(over.refused), 1),
        refused_p99_ms=round(1000 * percentile(over.refused, 0.99), 1),
        refused_max_ms=round(1000 * max(over.refused), 1),
        sent_late_p99_ms=round(1000 * percentile(over.late, 0.99), 1),
        failed=over.others,
        first_token_ms=f"{1000 * calm.first_token:.0f} → {1000 * over.first_token:.0f}",
        inter_token_ms=f"{1000 * calm.inter_token:.1f} → {1000 * over.inter_token:.1f}",
        rss_mb=f"{began / 2**20:.0f} → {over.peak / 2**20:.0f}",
    )
    assert over.others == 0
    assert len(over.refused) > seconds
    assert over.peak - began < GROWTH_BYTES
    assert httpx.get(f"{worker.ops_url}/readyz", timeout=10).status_code == httpx.codes.OK
    return best, calm, over


@pytest.mark.timeout(600)
def test_ten_times_the_load_for_a_while(short_queue: Any, figures: Callable[..., None]) -> None:
    """Ten times the load for ten seconds: the goodput stays, and what has no place hears so at once.

    Other work on the machine takes time from the worker, so its own CPU time is what counts here.
    """
    best, _, over = overload(short_queue, figures, knee_s=5, seconds=10)
    assert over.tokens_cpu >= GOODPUT_PER_CPU * best.tokens_cpu
    assert statistics.median(over.refused) <= REFUSED_WITHIN_S


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_times_the_load_for_a_minute(short_queue: Any, figures: Callable[..., None]) -> None:
    """Ten times the load for a minute: goodput and latency stay, and 99 % of the refusals take 50 ms."""
    best, calm, over = overload(short_queue, figures, knee_s=15, seconds=60)
    assert over.tokens >= GOODPUT * best.tokens
    assert percentile(over.refused, 0.99) <= REFUSED_WITHIN_S
    assert over.first_token <= SLOWER * calm.first_token
    assert over.inter_token <= SLOWER * calm.inter_token
