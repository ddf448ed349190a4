"""The status of a ZeroLayerPool."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from zerolayer_operator.api.base import ApiModel
from zerolayer_operator.api.update_status import AnchorStatus, FailedUpdate, FinishedUpdate, UpdateStatus

HISTORY_LIMIT: Final = 10


class Phase(StrEnum):
    """One word for people; programs read the conditions."""

    PENDING = "Pending"
    WARMING_UP = "WarmingUp"
    READY = "Ready"
    UPDATING = "Updating"
    DEGRADED = "Degraded"
    PAUSED = "Paused"


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionType(StrEnum):
    """The conditions that a pool reports."""

    READY = "Ready"
    PROGRESSING = "Progressing"
    WARMED_UP = "WarmedUp"
    DEGRADED = "Degraded"
    ANCHOR_CURRENT = "AnchorCurrent"
    SCALING_TUNED = "ScalingTuned"


class Condition(ApiModel):
    """A standard Kubernetes condition."""

    type: Annotated[str, Field(description="Name of the condition.", max_length=316)]
    status: Annotated[
        ConditionStatus, Field(description="Whether the condition holds: True, False or Unknown.")
    ]
    observed_generation: Annotated[
        int | None,
        Field(description="Generation of the spec that the condition was found for.", ge=0),
    ] = None
    last_transition_time: Annotated[
        str,
        Field(description="When status last changed.", json_schema_extra={"format": "date-time"}),
    ]
    reason: Annotated[
        str, Field(description="One word for programs that says why.", min_length=1, max_length=1024)
    ]
    message: Annotated[
        str, Field(description="A sentence for people that says why and what to do.", max_length=32768)
    ]


class RevisionStatus(ApiModel):
    """What was resolved once for a revision and stays with it."""

    name: Annotated[str, Field(description="Hash of the inputs that identify the revision.", max_length=63)]
    image: Annotated[
        str,
        Field(
            description="Worker image that the revision runs, with its digest where the registry could be "
            "asked.",
            max_length=1024,
        ),
    ]
    model_image: Annotated[
        str | None,
        Field(
            description="Image that holds the revision's weights, with its digest where the registry could "
            "be asked.",
            max_length=1024,
        ),
    ] = None
    anchor_image: Annotated[
        str | None,
        Field(
            description="Image that holds the revision's bundle, with its digest where the registry could "
            "be asked.",
            max_length=1024,
        ),
    ] = None
    unpinned: Annotated[
        str | None,
        Field(
            description="Which images of the revision run by their tag, because its digest is unknown, and "
            "why.",
            max_length=4096,
        ),
    ] = None
    model_commit: Annotated[
        str | None,
        Field(description="Commit that a Hugging Face revision was resolved to.", max_length=200),
    ] = None
    warm: Annotated[
        bool,
        Field(description="Whether workers of this revision have been warm; only such a one can take over."),
    ] = False


class WarmupStatus(ApiModel):
    """How long the serving workers took from scheduled to ready."""

    p50_seconds: Annotated[int, Field(description="Median of the serving workers, in seconds.", ge=0)]
    p95_seconds: Annotated[
        int, Field(description="95th percentile of the serving workers, in seconds.", ge=0)
    ]


class ScalingStatus(ApiModel):
    """How the autoscaler is set, and what it is set by.

    What only measures is written at most every five minutes, beside whatever else changes.
    """

    window: Annotated[
        str | None,
        Field(description="Delay before a scale-down, as a Go duration: 120s.", max_length=16),
    ] = None
    hold: Annotated[
        int | None,
        Field(
            description="Fewest workers for now, so that the recent peak of the load still fits; absent "
            "while that is spec.autoscaling.minReplicas.",
            ge=0,
        ),
    ] = None
    flatness: Annotated[
        str | None,
        Field(
            description="How flat the load has been, from 0 to 1: 0.93; absent where unknown.", max_length=8
        ),
    ] = None
    utilization: Annotated[
        int | None,
        Field(
            description="Share of the ready workers' capacity in use, in percent; absent where unknown.", ge=0
        ),
    ] = None
    why: Annotated[
        str | None,
        Field(description="A sentence for people on why the window is as it is.", max_length=4096),
    ] = None
    last_change: Annotated[
        str | None,
        Field(
            description="When window or hold last changed.",
            json_schema_extra={"format": "date-time"},
        ),
    ] = None
    regrets: Annotated[
        int | None,
        Field(
            description="Times the pool grew within one cold start after it had shrunk.",
            ge=0,
        ),
    ] = None
    replica_seconds_saved: Annotated[
        int | None,
        Field(
            description="Worker-seconds that a fixed window of 300s would have cost more, by a replay of the "
            "autoscaler's algorithm; negative if less.",
        ),
    ] = None
    replica_seconds_spent: Annotated[
        int | None,
        Field(
            description="Worker-seconds of the pool, counted on when the operator is restarted; only with "
            "spec.autoscaling.cost.",
            ge=0,
        ),
    ] = None
    replica_seconds_penalty: Annotated[
        int | None,
        Field(
            description="Worker-seconds that spec.autoscaling.cost.latencyPenalty has added to those; absent "
            "before any time to a first token was known.",
            ge=0,
        ),
    ] = None
    first_token_p99: Annotated[
        str | None,
        Field(
            description="99th percentile of the time to the first token during about a minute, with "
            "spec.autoscaling.cost.latencyPenalty: 850ms; absent where unknown, and where nobody waited.",
            max_length=16,
        ),
    ] = None
    latency_penalty: Annotated[
        str | None,
        Field(
            description="What the pool's replica-time of that minute is weighted with, at least 1: 1.12; "
            "absent likewise.",
            max_length=16,
        ),
    ] = None
    spent: Annotated[
        str | None,
        Field(
            description="Price of replicaSecondsSpent, where spec.autoscaling.cost says what a worker costs.",
            max_length=64,
        ),
    ] = None
    spent_weighted: Annotated[
        str | None,
        Field(
            description="The same with replicaSecondsPenalty.",
            max_length=64,
        ),
    ] = None
    saved: Annotated[
        str | None,
        Field(
            description="Price of replicaSecondsSaved, less that of replicaSecondsPenalty.",
            max_length=64,
        ),
    ] = None


class PoolStatus(ApiModel):
    """What the operator found and did."""

    phase: Annotated[Phase | None, Field(description="One word that sums up the conditions.")] = None
    observed_generation: Annotated[
        int | None,
        Field(description="Generation of the spec that this status was made for.", ge=0),
    ] = None
    replicas: Annotated[int, Field(description="Workers of the serving revision that exist.", ge=0)] = 0
    ready_replicas: Annotated[
        int,
        Field(description="Workers of the serving revision that are warm and can answer.", ge=0),
    ] = 0
    ready: Annotated[
        str | None,
        Field(description="Ready and wanted workers of the serving revision, as 2/3.", max_length=32),
    ] = None
    selector: Annotated[
        str | None,
        Field(description="Label selector that matches the serving revision's pods only.", max_length=512),
    ] = None
    serving_revision: Annotated[
        str | None,
        Field(description="Revision that the pool's Service sends requests to.", max_length=63),
    ] = None
    revisions: Annotated[
        tuple[RevisionStatus, ...] | None,
        Field(
            description="Revisions that exist, with what was resolved for them.",
            max_length=16,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = None
    warmup: Annotated[
        WarmupStatus | None,
        Field(description="How long the serving workers took from scheduled to ready."),
    ] = None
    scaling: Annotated[
        ScalingStatus | None,
        Field(description="How the autoscaler is set; absent for a pool of a fixed size."),
    ] = None
    anchor: Annotated[
        AnchorStatus | None,
        Field(description="The knowledge anchors in use; absent where no revision has one."),
    ] = None
    update: Annotated[
        UpdateStatus | None,
        Field(description="The update that is going on; absent while there is none."),
    ] = None
    failed: Annotated[
        FailedUpdate | None,
        Field(description="The revision that the spec asks for and that failed, where that is so."),
    ] = None
    history: Annotated[
        tuple[FinishedUpdate, ...] | None,
        Field(
            description="The last updates, the newest first.",
            max_length=HISTORY_LIMIT,
            json_schema_extra={"x-kubernetes-list-type": "atomic"},
        ),
    ] = None
    conditions: Annotated[
        tuple[Condition, ...] | None,
        Field(
            description="The pool's conditions: Ready, Progressing, WarmedUp, Degraded, with spec.anchor "
            "AnchorCurrent and, with spec.autoscaling.scaleDown.mode: Flatness, ScalingTuned.",
            max_length=16,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = None
