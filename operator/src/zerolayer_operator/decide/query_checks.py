"""Users' own checks: what is asked, and whether the answer is as wanted; no I/O."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from zerolayer_operator.api.update import Comparison, QueryCheck
from zerolayer_operator.decide.evidence import QueryResult
from zerolayer_operator.observe.answered import QueryAnswer

_VARIABLE: Final = re.compile(r"\$(blue|green|pool|namespace)\b")
_WANTED: Final = {Comparison.AT_MOST: "at most", Comparison.AT_LEAST: "at least"}
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Variables:
    """What the variables of a query stand for: names of Kubernetes' objects, which no quote can break out of.

    Attributes:
        blue: The serving revision.
        green: The canary.
        pool: The pool.
        namespace: Its namespace.

    Raises:
        ValueError: One is no such name.
    """

    blue: str
    green: str
    pool: str
    namespace: str

    def __post_init__(self) -> None:
        for value in (self.blue, self.green, self.pool, self.namespace):
            if not _NAME.fullmatch(value):
                raise ValueError(f"{value!r} is no name")


def asked(checks: Sequence[QueryCheck], variables: Variables) -> dict[str, str]:
    """The queries to ask, by the names of their checks."""
    return {check.name: substituted(check.query, variables) for check in checks}


def substituted(query: str, variables: Variables) -> str:
    """A query with its variables replaced; any other ``$``, such as a pattern's end, stays as it is."""
    return _VARIABLE.sub(lambda found: str(getattr(variables, found[1])), query)


def compared(checks: Sequence[QueryCheck], answers: Mapping[str, QueryAnswer]) -> Iterator[QueryResult]:
    """What each check comes to; one that was not answered has no value."""
    for check in checks:
        yield _compared(check, answers.get(check.name, QueryAnswer(unknown="not asked yet")))


def _compared(check: QueryCheck, answer: QueryAnswer) -> QueryResult:
    value = answer.value
    if value is None:
        return QueryResult(check.name, None, answer.unknown)
    wanted = f"{_WANTED[check.comparison]} {check.threshold}"
    if math.isnan(value):
        return QueryResult(check.name, None, f"its value is not a number (0/0); wanted is {wanted}")
    threshold = float(check.threshold)
    satisfied = value <= threshold if check.comparison == Comparison.AT_MOST else value >= threshold
    return QueryResult(check.name, satisfied, f"{value:.6g}, wanted is {wanted}")
