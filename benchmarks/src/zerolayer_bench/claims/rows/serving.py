"""First tokens, throughput and utilisation of a whole worker."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import pstdev
from typing import Any, Final

from zerolayer_bench.claims.record import Records
from zerolayer_bench.claims.rows.base import FUSED, LOGITS, Claim, table
from zerolayer_bench.claims.statistics import resampled
from zerolayer_bench.claims.verdicts import Part
from zerolayer_bench.worker.statistics import quantile

Turn = Mapping[str, Mapping[str, Any]]
"""A block of each path, which had the same requests."""
_P50, _P95, _LONG = 389 / 421, 412 / 683, 214 / 782
_RATE: Final = 21 / 14
# The width of 62 to 68 % over that of 45 to 88 %.
_EVEN: Final = (68 - 62) / (88 - 45)
# Seconds at the beginning of a block in which its load builds up.
_RAMP: Final = 3


def turns(data: Mapping[str, Any]) -> list[Turn]:
    """Returns the blocks of each turn by path."""
    found: dict[int, dict[str, Any]] = {}
    for block in data["blocks"]:
        found.setdefault(block["turn"], {})[block["path"]] = block
    return [block for block in found.values() if len(block) == 2]


def _ratio(value: Callable[[Sequence[Turn], str], float]) -> Callable[[Sequence[Turn]], float]:
    return lambda blocks: value(blocks, FUSED) / value(blocks, LOGITS)


def _first_token(blocks: Sequence[Turn], path: str, share: float, *, long: bool = False) -> float:
    """A quantile of the time to the first token, in ms."""
    requests = (request for turn in blocks for request in turn[path]["requests"])
    return quantile(sorted(each["ttft_ms"] for each in requests if each["long"] or not long), share)


def _per_second(blocks: Sequence[Turn], path: str, field: str | None = None) -> float:
    """Answers, or the sum of a field of theirs, per second over the time of their blocks."""
    answered = [turn[path]["requests"] for turn in blocks]
    seconds = sum(max(each["ended"] for each in requests) for requests in answered)
    return sum(each[field] if field else 1 for requests in answered for each in requests) / seconds


def _first_token_parts(records: Records) -> list[Part]:
    blocks = turns(records["served"][-1])

    def measured(what: str, introduced: str, needed: float, share: float, *, long: bool) -> Part:
        value = _ratio(lambda some, path: _first_token(some, path, share, long=long))
        return Part(what, introduced, needed=needed, measured=resampled(blocks, value), neutral=1.0)

    return [
        measured("p50, fused over logits", "421 → 389 ms", _P50, 0.5, long=False),
        measured("p95, fused over logits", "683 → 412 ms", _P95, 0.95, long=False),
        measured("p99 of long prompts, fused over logits", "782 → 214 ms", _LONG, 0.99, long=True),
        Part(
            "p99 and p99.9 with compressed prompts",
            "423 → 217 ms, 1.8 s → 298 ms",
            needed=217 / 423,
            remark="prompts are not compressed by this worker",
        ),
    ]


def _first_token_tables(records: Records) -> Iterator[str]:
    data = records["served"][-1]
    blocks = turns(data)
    rows = [
        [
            path,
            str(sum(len(turn[path]["requests"]) for turn in blocks)),
            *(f"{_first_token(blocks, path, share):.0f}" for share in (0.5, 0.95, 0.99)),
            f"{_first_token(blocks, path, 0.99, long=True):.0f}",
        ]
        for path in (FUSED, LOGITS)
    ]
    yield from table(["path", "requests", "p50, ms", "p95", "p99", "p99 of long prompts"], rows)


def _throughput_parts(records: Records) -> list[Part]:
    data = records["served"][-1]
    value = _ratio(_per_second)
    return [
        Part(
            "requests per second, fused over logits",
            "14 → 21 QPS",
            needed=_RATE,
            measured=resampled(turns(data), value),
            at_most=False,
            neutral=1.0,
        ),
        Part(
            "the same with contexts of 128K",
            "+88 %",
            needed=1.88,
            at_most=False,
            remark="the model's context ends at 8192 tokens",
        ),
        Part(
            "requests at once",
            "+37 %",
            needed=1.37,
            at_most=False,
            remark="both paths run 16 at once here; memory sets no limit at this size",
        ),
    ]


def _throughput_tables(records: Records) -> Iterator[str]:
    data = records["served"][-1]
    blocks = turns(data)
    rows = [
        [
            path,
            f"{_per_second(blocks, path):.2f}",
            f"{_per_second(blocks, path, 'tokens'):.1f}",
            " ".join(f"{_per_second([turn], path):.2f}" for turn in blocks),
        ]
        for path in (FUSED, LOGITS)
    ]
    yield from table(["path", "requests per s", "tokens per s", "requests per s of each block"], rows)


def _spread(blocks: Sequence[Turn], path: str, of: str) -> float:
    return pstdev(_samples(blocks, path, of))


def _samples(blocks: Sequence[Turn], path: str, of: str) -> list[float]:
    return [sample for turn in blocks for sample in turn[path][of][_RAMP:]]


_USES: Final = {"processor": "the worker's use of the processor", "slots": "busy slots"}


def _utilisation_parts(records: Records) -> list[Part]:
    blocks = turns(records["utilisation"][-1])
    return [
        Part(
            f"standard deviation of {what}, fused over logits",
            "45 to 88 % → 62 to 68 %",
            needed=_EVEN,
            measured=resampled(blocks, _ratio(lambda some, path, of=of: _spread(some, path, of))),
            neutral=1.0,
        )
        for of, what in _USES.items()
    ]


def _utilisation_tables(records: Records) -> Iterator[str]:
    data = records["utilisation"][-1]
    blocks, rows = turns(data), list[list[str]]()
    for of, what in _USES.items():
        for path in (FUSED, LOGITS):
            samples = sorted(_samples(blocks, path, of))
            rows.append(
                [
                    what,
                    path,
                    f"{100 * sum(samples) / len(samples):.0f}",
                    f"{100 * pstdev(samples):.1f}",
                    f"{100 * quantile(samples, 0.05):.0f} to {100 * quantile(samples, 0.95):.0f}",
                ]
            )
    yield from table(["of", "path", "mean, %", "standard deviation", "p5 to p95"], rows)
    yield ""
    yield (
        f"Poisson arrivals of {data['rate']:.2f} requests per second, which is 70 % of the"
        f" {data['capacity']:.2f} that the logits path ended in a closed loop; samples of one second."
    )


_LOAD: Final = """\
Two workers with SmolLM2-135M on one core, one with the fused sampler and one with `--sampler naive`, which
keeps the logits and sorts them in fp32, each with 16 slots. In blocks that take turns, 24 clients stream 32
answers of 16 tokens, each asking again as soon as it has its answer; every eighth prompt is long (about 270
tokens), the others have about 60. Both paths get the same questions. The clients share the core. Intervals
are a bootstrap over the turns. An engine that takes a plain top-k of its logits is a faster baseline than
this one: see the time of the step above."""
FIRST_TOKEN: Final = Claim(
    title="Time to the first token",
    introduced="p50 421 → 389 ms, p95 683 → 412 ms, p99 of long text 782 → 214 ms",
    sources=("served",),
    how=_LOAD,
    parts=_first_token_parts,
    tables=_first_token_tables,
)
THROUGHPUT: Final = Claim(
    title="Throughput",
    introduced="14 → 21 QPS, +88 % at 128K, 37 % more requests at once",
    sources=("served",),
    how=("The same run."),
    parts=_throughput_parts,
    tables=_throughput_tables,
)
UTILISATION: Final = Claim(
    title="Even utilisation",
    introduced="45 to 88 % jagged → 62 to 68 % flat",
    sources=("utilisation",),
    how=(
        "The same two workers get the same requests at the same instants, in four blocks of 20 s each "
        "that take turns. *Busy slots* is the worker's own account, "
        "`zero_layer_busy_share_seconds_total`."
    ),
    parts=_utilisation_parts,
    tables=_utilisation_tables,
)
