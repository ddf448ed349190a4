"""What a claim is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zerolayer_bench.claims.record import Records
from zerolayer_bench.claims.verdicts import Part

FUSED, LOGITS = "fused", "logits"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and how it is judged.

    Attributes:
        title: its name on the page.
        introduced: the figure it was introduced with.
        sources: measurements that it is judged by.
        how: what was done, and what has to be known to read the figures.
        parts: each figure, judged from the raw numbers.
        tables: lines of Markdown with more of what was measured.
    """

    title: str
    introduced: str
    sources: tuple[str, ...]
    how: str
    parts: Callable[[Records], list[Part]]
    tables: Callable[[Records], Iterator[str]]


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yields a Markdown table."""
    for cells in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cells)} |"
