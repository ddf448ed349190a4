"""How a pool gets from one revision to the next."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from zerolayer_operator.api.base import ApiModel, Rule
from zerolayer_operator.api.types import CONFIG_KEY, Duration, ObjectName, SecretKey, seconds

MAX_SOAK_FACTOR: Final = 3
LEAST_MAX_SOAK_S: Final = 600


class Strategy(StrEnum):
    """How a new revision takes over."""

    CANARY = "Canary"
    IMMEDIATE = "Immediate"


class Promotion(StrEnum):
    """Who lets a revision that passed its soak take over."""

    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class Comparison(StrEnum):
    """How the value of a query has to compare with its threshold."""

    AT_MOST = "AtMost"
    AT_LEAST = "AtLeast"


class GoldenConfigMap(ApiModel):
    """Questions with known answers, in a ConfigMap."""

    name: Annotated[ObjectName, Field(description="ConfigMap in the pool's namespace.")]
    key: Annotated[SecretKey, Field(description="Key that holds the questions, one JSON object a line.")] = (
        "golden.jsonl"
    )


class GoldenSpec(ApiModel):
    """Questions that both revisions are asked."""

    config_map: Annotated[GoldenConfigMap, Field(description="Where the questions are.")]
    min_hit_rate: Annotated[
        int,
        Field(
            description="Share of the questions with an expected answer that the new revision has to answer "
            "as expected, in percent.",
            ge=0,
            le=100,
        ),
    ] = 90


class QueryCheck(ApiModel):
    """A figure of the user's own."""

    name: Annotated[
        str,
        Field(
            description="Name of the check in status and Events.",
            min_length=1,
            max_length=63,
            pattern=CONFIG_KEY,
        ),
    ]
    query: Annotated[
        str,
        Field(
            description="PromQL with one value. $blue and $green stand for the names of the revisions, $pool "
            "and $namespace for the pool's.",
            min_length=1,
            max_length=4096,
        ),
    ]
    comparison: Annotated[
        Comparison, Field(description="How the value has to compare with the threshold.")
    ] = Comparison.AT_MOST
    threshold: Annotated[
        str,
        Field(
            description="The threshold, a decimal number: 0.01.",
            min_length=1,
            max_length=32,
            pattern=r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$",
        ),
    ]


class ChecksSpec(ApiModel):
    """What the verdict about a new revision rests on; both revisions are compared in the same time."""

    rules = (
        Rule(
            cel="!has(self.queries) || self.queries.all(a, self.queries.exists_one(b, b.name == a.name))",
            message="spec.update.checks.queries must each have a name of their own",
            holds=lambda checks: len({query.name for query in checks.queries}) == len(checks.queries),
        ),
    )

    error_rate: Annotated[bool, Field(description="Whether the share of failed answers is compared.")] = True
    latency: Annotated[
        bool,
        Field(
            description="Whether the time to the first token and that between tokens are compared, at their "
            "50th, 95th and 99th percentiles."
        ),
    ] = True
    consistency: Annotated[
        bool,
        Field(
            description="Whether one deterministic answer that differs when it is asked for again is a "
            "failure."
        ),
    ] = True
    queries: Annotated[
        tuple[QueryCheck, ...],
        Field(
            description="Figures of your own, asked of spec.autoscaling.prometheus or the installation's own "
            "Prometheus; none of them may be unknown when the verdict is given.",
            max_length=8,
        ),
    ] = ()


class UpdateSpec(ApiModel):
    """How a new revision takes over from the one that serves."""

    rules = (
        Rule(
            cel="!has(self.maxSoak) || duration(self.soak) <= duration(self.maxSoak)",
            message="spec.update.soak must not exceed spec.update.maxSoak; soak is 24h if absent",
            holds=lambda update: update.soak_s <= update.max_soak_s,
        ),
    )

    strategy: Annotated[
        Strategy,
        Field(
            description="How a new revision takes over. Canary: it gets canaryWeight percent of the requests "
            "for the time of the soak, and all of them once the verdict is good. Immediate: all of them as "
            "soon as it is warm."
        ),
    ] = Strategy.CANARY
    canary_weight: Annotated[
        int,
        Field(description="Share of the requests that the canary gets, in percent.", ge=1, le=50),
    ] = 10
    soak: Annotated[
        Duration,
        Field(
            description="How long the canary is watched at least, as a Go duration in h, m and s: 24h, 90s; "
            "there is no d for days."
        ),
    ] = "24h"
    min_samples: Annotated[
        int,
        Field(
            description="Answers of the canary before there is a verdict; the soak is extended until then.",
            ge=1,
            le=1_000_000,
        ),
    ] = 500
    max_soak: Annotated[
        Duration | None,
        Field(
            description="How long the soak may be extended until there is a verdict; without one by then the "
            "canary is rolled back. Three times the soak if absent, and at least ten minutes."
        ),
    ] = None
    promotion: Annotated[
        Promotion,
        Field(
            description="Automatic: a good verdict promotes the canary. Manual: so does a person, by "
            "`kubectl zerolayer promote` or the annotation zerolayer.dev/promote."
        ),
    ] = Promotion.AUTOMATIC
    blue_retention: Annotated[
        Duration,
        Field(
            description="How long the former revision stays, at its size, for conversations that name it and "
            "for the way back."
        ),
    ] = "10m"
    failed_retention: Annotated[
        Duration,
        Field(description="How long one worker of a revision that failed stays, without requests."),
    ] = "1h"
    golden: Annotated[
        GoldenSpec | None,
        Field(description="Questions with known answers that both revisions are asked by a Job."),
    ] = None
    checks: Annotated[ChecksSpec, Field(description="What the verdict rests on.")] = ChecksSpec()

    @property
    def soak_s(self) -> int:
        """The least time of the soak, in seconds."""
        return seconds(self.soak)

    @property
    def max_soak_s(self) -> int:
        """The longest time of the soak, in seconds."""
        if self.max_soak is not None:
            return seconds(self.max_soak)
        return max(LEAST_MAX_SOAK_S, MAX_SOAK_FACTOR * self.soak_s)
