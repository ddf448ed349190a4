"""Repeats of deterministic and of creative answers."""

from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import mean
from typing import Final

from zerolayer_bench.claims.record import Records
from zerolayer_bench.claims.rows.base import Claim, table
from zerolayer_bench.claims.statistics import certain_share
from zerolayer_bench.claims.verdicts import Estimate, Part

_REPEATS: Final = 0.9999
_SAME: Final = 0.15


def _answers(records: Records) -> Mapping[str, Counter[str]]:
    """By prompt, how often each answer came over all starts of the engine."""
    found: dict[str, Counter[str]] = {}
    for data in records["repeats"]:
        for name, answers in data["answers"].items():
            found.setdefault(name, Counter()).update(answers)
    return found


def _counts(records: Records) -> tuple[int, int]:
    """Answers that are their prompt's most frequent one, and others."""
    answers = _answers(records).values()
    clean = sum(max(each.values()) for each in answers)
    return clean, sum(each.total() for each in answers) - clean


def _repeats_parts(records: Records) -> list[Part]:
    clean, failed = _counts(records)
    return [
        Part(
            "share of the repeats that are the same tokens",
            "≥ 99.99 %",
            needed=_REPEATS,
            measured=Estimate.exact(clean / (clean + failed)),
            at_most=False,
            unit="%",
        ),
        Part(
            "share of which one can be 95 % sure, from so many repeats",
            "≥ 99.99 %",
            needed=_REPEATS,
            measured=Estimate.exact(certain_share(clean, failed)),
            at_most=False,
            unit="%",
            remark="29 956 clean repeats are the fewest for it",
        ),
    ]


def _repeats_tables(records: Records) -> Iterator[str]:
    rows = [
        [name, str(each.total()), str(len(each)), str(each.total() - max(each.values()))]
        for name, each in _answers(records).items()
    ]
    yield from table(["prompt", "repeats", "distinct answers", "other than the most frequent"], rows)
    yield ""
    starts, others = len(records["repeats"]), sum(data["others"] for data in records["repeats"])
    yield f"{starts} starts of the engine, {others} other requests meanwhile."


def _creative_parts(records: Records) -> list[Part]:
    shares = [each["creative"] for data in records["creative"] for each in data["prompts"].values()]
    return [
        Part(what, "≤ 15 % (12.3 % seen)", needed=_SAME, measured=Estimate.exact(value), unit="%")
        for what, value in (
            ("same pairs, over all prompts", mean(shares)),
            ("same pairs, the prompt with the most", max(shares)),
        )
    ]


def _creative_tables(records: Records) -> Iterator[str]:
    rows = [
        [prompt, *(f"{100 * shares[intent]:.1f} %" for intent in ("creative", "balanced"))]
        for data in records["creative"]
        for prompt, shares in data["prompts"].items()
    ]
    yield from table(["prompt", "creative", "balanced"], rows)


REPEATS: Final = Claim(
    title="Deterministic repeats",
    introduced="≥ 99.99 % of 100",
    sources=("repeats",),
    how=(
        "Three prompts, one of them longer than a cached chunk, asked again and again in batches that "
        "change with three other clients, who ask for other things at other lengths and intents; "
        "beginnings are taken from the cache, thrown out and computed again. The engine is started anew "
        "for every 1002 repeats, and all answers are compared with each other, token by token."
    ),
    parts=_repeats_parts,
    tables=_repeats_tables,
)
CREATIVE: Final = Claim(
    title="Creative repeats",
    introduced="≤ 15 % (12.3 % seen)",
    sources=("creative",),
    how=(
        "The share of pairs among 100 answers to one open prompt, each with a seed of its own, that begin "
        "with the same 32 tokens. Beside them 16 balanced answers to the same prompts, in the same run."
    ),
    parts=_creative_parts,
    tables=_creative_tables,
)
