"""A switch of intent, the router's size, and warm-up."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, median
from typing import Any, Final

from zerolayer_bench.claims.record import Records
from zerolayer_bench.claims.rows.base import Claim, table
from zerolayer_bench.claims.statistics import resampled
from zerolayer_bench.claims.verdicts import Estimate, Part
from zerolayer_bench.worker.statistics import quantile

_SWITCH_MS: Final = 0.15
_ROUTER_BYTES: Final = 32 * 1024
_FIRST_MS: Final = 120.0
_LATER: Final = 1 - 0.63
# Stretches of a conversation that are drawn as a whole: neighbours share what else the machine did.
_STRETCH: Final = 50
_DRAWS: Final = 400


def _added_ms(stretches: Sequence[Sequence[Mapping[str, Any]]]) -> float:
    """Median of the requests after a switch less that of the others, the mean over the intents."""
    times: dict[str, dict[bool, list[float]]] = {}
    for stretch in stretches:
        for request in stretch:
            kinds = times.setdefault(request["intent"], {True: [], False: []})
            kinds[request["switched"]].append(request["ms"])
    return mean(median(kinds[True]) - median(kinds[False]) for kinds in times.values())


def _switch_parts(records: Records) -> list[Part]:
    requests = records["switch"][-1]["requests"]
    stretches = [requests[at : at + _STRETCH] for at in range(0, len(requests), _STRETCH)]
    return [
        Part(
            "what a request after a switch takes longer",
            "+0.15 ms",
            needed=_SWITCH_MS,
            measured=resampled(stretches, _added_ms, _DRAWS),
            unit="ms",
        )
    ]


def _switch_tables(records: Records) -> Iterator[str]:
    data = records["switch"][-1]
    rows: list[list[str]] = []
    for intent in sorted({request["intent"] for request in data["requests"]}):
        for switched in (False, True):
            times = [
                each["ms"]
                for each in data["requests"]
                if each["intent"] == intent and each["switched"] == switched
            ]
            before = "another" if switched else "the same"
            rows.append([intent, before, str(len(times)), f"{median(times):.3f}"])
    yield from table(["intent", "intent before", "requests", "median, ms"], rows)
    yield ""
    yield f"Whole requests of {data['tokens']} tokens, one at a time."


def _router_parts(records: Records) -> list[Part]:
    size = records["router-size"][-1]["bytes"]
    return [
        Part(
            "the router's file",
            "32 KB",
            needed=_ROUTER_BYTES,
            measured=Estimate.exact(size),
            unit="bytes",
        )
    ]


def _no_tables(_records: Records) -> Iterator[str]:
    yield from ()


def _rounds(records: Records) -> list[dict[str, list[float]]]:
    """The times of both ways, for each round that has both."""
    by_way = {
        way: [data["ms"] for data in records["warm-up"] if data["way"] == way] for way in ("without", "with")
    }
    return [
        {"without": cold, "with": warm} for cold, warm in zip(by_way["without"], by_way["with"], strict=False)
    ]


def _first_ms(rounds: Sequence[Mapping[str, Sequence[float]]]) -> float:
    return median(each["without"][0] - each["with"][0] for each in rounds)


def _later(rounds: Sequence[Mapping[str, Sequence[float]]]) -> float:
    return _later_p99(rounds, "with") / _later_p99(rounds, "without")


def _later_p99(rounds: Sequence[Mapping[str, Sequence[float]]], way: str) -> float:
    return quantile(sorted(ms for each in rounds for ms in each[way][1:]), 0.99)


def _warm_up_parts(records: Records) -> list[Part]:
    rounds = _rounds(records)
    return [
        Part(
            "what the first request waits longer without warm-up",
            "+120 ms",
            needed=_FIRST_MS,
            measured=resampled(rounds, _first_ms),
            at_most=False,
            neutral=0.0,
            unit="ms",
        ),
        Part(
            "p99 of later requests, with warm-up over without",
            "-63 %",
            needed=_LATER,
            measured=resampled(rounds, _later),
            neutral=1.0,
        ),
        Part(
            "the same with CUDA graphs",
            "p99 -63 %",
            needed=_LATER,
            remark="measured on a CPU, which has none",
        ),
    ]


def _warm_up_tables(records: Records) -> Iterator[str]:
    rounds = _rounds(records)
    rows = [
        [
            way,
            f"{median(each[way][0] for each in rounds):.0f}",
            f"{median(ms for each in rounds for ms in each[way][1:]):.0f}",
            f"{_later_p99(rounds, way):.0f}",
            f"{median(sum(d['stages'].values()) for d in records['warm-up'] if d['way'] == way):.1f}",
        ]
        for way in ("without", "with")
    ]
    head = ["warm-up", "first request, ms", "later ones, median", "later ones, p99", "start, s"]
    yield from table(head, rows)


SWITCH: Final = Claim(
    title="Switch of intent",
    introduced="+0.15 ms",
    sources=("switch",),
    how=(
        "One conversation in which half of the requests have the intent of the one before, in random "
        "order, so that alternating and constant intents are measured in one run. The interval has to lie "
        "within the figure."
    ),
    parts=_switch_parts,
    tables=_switch_tables,
)
ROUTER_SIZE: Final = Claim(
    title="Size of the router",
    introduced="32 KB",
    sources=("router-size",),
    how=("The trained router that comes with the demo's model; larger files are refused."),
    parts=_router_parts,
    tables=_no_tables,
)
WARM_UP: Final = Claim(
    title="Warm-up",
    introduced="first request +120 ms with graphs, then p99 -63 %",
    sources=("warm-up",),
    how=(
        "Fresh processes in turns. Without warm-up the engine runs neither its first step nor requests "
        "before it serves; the self-test, which decides how it computes, still runs and warms part of it. "
        "The figure leaves open what its 120 ms are of; judged is what the first request waits longer "
        "where nothing warmed up."
    ),
    parts=_warm_up_parts,
    tables=_warm_up_tables,
)
