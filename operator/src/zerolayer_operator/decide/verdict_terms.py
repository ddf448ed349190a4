"""What a verdict on an update goes by, and what it says."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Check(StrEnum):
    """What is compared, apart from the user's own queries."""

    ERRORS = "errors"
    FIRST_TOKEN = "firstToken"  # noqa: S105 - a time, not a secret
    TOKEN_GAPS = "tokenGaps"  # noqa: S105
    CONSISTENCY = "consistency"
    GOLDEN_ANSWERS = "goldenAnswers"
    GOLDEN_SIMILARITY = "goldenSimilarity"
    DDS = "dds"


class Outcome(StrEnum):
    """What is to be done with green."""

    PASS = "Pass"  # noqa: S105
    FAIL = "Fail"
    UNDECIDED = "Undecided"


class Reason(StrEnum):
    """Why, in one word."""

    ERROR_RATE_HIGHER = "ErrorRateHigher"
    FIRST_TOKEN_SLOWER = "FirstTokenSlower"  # noqa: S105
    TOKENS_SLOWER = "TokensSlower"
    NOT_DETERMINISTIC = "NotDeterministic"
    WRONG_ANSWERS = "WrongAnswers"
    ANSWERS_DRIFTED = "AnswersDrifted"
    QUERY_FAILED = "QueryFailed"
    TOO_FEW_SAMPLES = "TooFewSamples"
    NO_DATA = "NoData"
    NO_REQUESTS = "NoRequests"
    NO_WORSE = "NoWorse"


class State(StrEnum):
    """How a check stands."""

    OK = "Ok"
    FAILED = "Failed"
    NO_DATA = "NoData"
    OFF = "Off"


TRAFFIC: Final = frozenset({Check.ERRORS, Check.FIRST_TOKEN, Check.TOKEN_GAPS})
"""Checks that compare what users' requests met."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a verdict goes by.

    Attributes:
        min_samples: Requests that green has to have answered before anything is said that rests on a sample.
        alpha: Probability that a green that is no worse fails a comparison of traffic, over all looks.
        on: Checks that are asked, apart from queries.
        queries: Names of the user's queries that are asked.
        error_tolerance: Share of failed requests that green may have beyond blue's, in [0, 1).
        slower: Factor by which green's times may be longer than blue's, above 1.
        cluster: Requests of a side that may share one fate, such as one batch; blue's spread may raise it.
        golden_right: Share of expected answers that green has to give, in [0, 1].
    """

    min_samples: int = 500
    alpha: float = 0.05
    on: frozenset[Check] = TRAFFIC | {Check.CONSISTENCY}
    queries: tuple[str, ...] = ()
    error_tolerance: float = 0.005
    slower: float = 1.5
    cluster: float = 2.0
    golden_right: float = 0.9


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one check stands.

    Attributes:
        name: A `Check`, or ``query/<name>``.
        state: How it stands.
        reason: Of the verdict if this check decides it; ``None`` where it is Ok or Off.
        detail: The figures, as a sentence for people.
    """

    name: str
    state: State
    reason: Reason | None
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of green by now.

    `Outcome.PASS` says that green would pass if the soak were over: when that is, is for the caller to say,
    as it is to extend the soak while the outcome is `Outcome.UNDECIDED`. `Outcome.FAIL` is final.

    Attributes:
        outcome: What is to be done.
        reason: Why, in one word.
        message: Why, for people.
        checks: How each check stands, those that are off too.
        samples: Requests that green has answered in the compared intervals.
    """

    outcome: Outcome
    reason: Reason
    message: str
    checks: tuple[CheckResult, ...] = ()
    samples: int = 0
