"""What a pool's status tells of updates."""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field

from zerolayer_operator.api.anchor import AnchorDigest, AnchorVersion
from zerolayer_operator.api.base import ApiModel

EVIDENCE_LIMIT: Final = 8192
MESSAGE_LIMIT: Final = 4096

_TIME: Final[dict[str, Any]] = {"format": "date-time"}
RevisionName = Annotated[str, Field(min_length=1, max_length=63)]


class Step(StrEnum):
    """How far an update is."""

    PREPARE = "Prepare"
    SOAK = "Soak"
    AWAIT_PROMOTION = "AwaitPromotion"
    PROMOTE = "Promote"
    RETAIN = "Retain"
    ROLL_BACK = "RollBack"


class Outcome(StrEnum):
    """What is known of a canary so far."""

    UNDECIDED = "Undecided"
    PASS = "Pass"  # noqa: S105 - no password
    FAIL = "Fail"


class CheckResult(StrEnum):
    """What one check says."""

    OK = "Ok"
    FAILED = "Failed"
    NO_DATA = "NoData"
    OFF = "Off"


class End(StrEnum):
    """How an update ended."""

    PROMOTED = "Promoted"
    ROLLED_BACK = "RolledBack"
    REFUSED = "Refused"
    CANCELLED = "Cancelled"
    REPLACED = "Replaced"


class Wish(StrEnum):
    """What a person can ask of an update."""

    PROMOTE = "promote"
    ROLL_BACK = "rollback"


class ActiveAnchor(ApiModel):
    """An anchor and the revision that has it."""

    version: Annotated[AnchorVersion, Field(description="Version that answers name.")]
    digest: Annotated[AnchorDigest, Field(description="Digest of the bundle's file.")]
    revision: Annotated[RevisionName, Field(description="Revision whose workers have it.")]


class AnchorStatus(ApiModel):
    """The knowledge that answers come from."""

    active: Annotated[
        ActiveAnchor | None,
        Field(description="Anchor of the revision that serves; absent where it has none."),
    ] = None
    canary: Annotated[
        ActiveAnchor | None,
        Field(description="Anchor of the revision that is being introduced."),
    ] = None


class CheckStatus(ApiModel):
    """What one check says of the canary."""

    name: Annotated[str, Field(description="Name of the check.", min_length=1, max_length=63)]
    result: Annotated[CheckResult, Field(description="Ok, Failed, NoData, or Off where it is not asked.")]
    message: Annotated[str, Field(description="Its figures, for people.", max_length=1024)] = ""


class UpdateStatus(ApiModel):
    """An update that is going on."""

    step: Annotated[Step, Field(description="How far it is.")]
    from_revision: Annotated[RevisionName, Field(description="Revision that served when it began.")]
    to_revision: Annotated[RevisionName, Field(description="Revision that is being introduced.")]
    started_at: Annotated[str, Field(description="When it began.", json_schema_extra=_TIME)]
    weight: Annotated[
        int,
        Field(description="Share of the requests that the canary is to get now, in percent.", ge=0, le=100),
    ] = 0
    share: Annotated[
        int | None,
        Field(
            description="Share of the requests that the canary gets without a gateway: that of the ready "
            "workers, in percent.",
            ge=0,
            le=100,
        ),
    ] = None
    canary: Annotated[
        str | None,
        Field(description="Weight, or the real share without a gateway, for people: 10%.", max_length=8),
    ] = None
    soak_started_at: Annotated[
        str | None, Field(description="When the soak began.", json_schema_extra=_TIME)
    ] = None
    soak_ends_at: Annotated[
        str | None,
        Field(
            description="When the soak ends; it is extended where there is no verdict by then.",
            json_schema_extra=_TIME,
        ),
    ] = None
    step_started_at: Annotated[
        str | None, Field(description="When the present step began.", json_schema_extra=_TIME)
    ] = None
    switched_at: Annotated[
        str | None,
        Field(description="When the new revision took over.", json_schema_extra=_TIME),
    ] = None
    raise_to: Annotated[
        int | None,
        Field(description="Workers that the old revision is to have before a roll-back is over.", ge=0),
    ] = None
    verdict: Annotated[Outcome, Field(description="What is known of the canary so far.")] = Outcome.UNDECIDED
    reason: Annotated[
        str | None, Field(description="One word on the verdict, or on the step.", max_length=256)
    ] = None
    message: Annotated[
        str | None, Field(description="A sentence on it, for people.", max_length=MESSAGE_LIMIT)
    ] = None
    samples: Annotated[int, Field(description="Answers of the canary that the verdict rests on.", ge=0)] = 0
    checks: Annotated[
        tuple[CheckStatus, ...],
        Field(description="What each check says.", max_length=32),
    ] = ()
    decided_by: Annotated[
        str | None,
        Field(description="Who or what decided on the present step.", max_length=256),
    ] = None
    standing_wishes: Annotated[
        tuple[Wish, ...],
        Field(
            description="Annotations zerolayer.dev/promote and rollback that named the revision before this "
            "update began: what was asked of an earlier one decides nothing. Set anew they count.",
            max_length=2,
        ),
    ] = ()
    evidence: Annotated[
        str | None,
        Field(
            description="What was counted, for an operator that starts anew; not meant to be read.",
            max_length=EVIDENCE_LIMIT,
        ),
    ] = None


class FailedUpdate(ApiModel):
    """A revision that failed: not tried again until the spec asks for another one or for another update."""

    revision: Annotated[RevisionName, Field(description="The revision.")]
    settings: Annotated[
        str, Field(description="Hash of the spec.update that it was judged by.", max_length=64)
    ]
    reason: Annotated[str, Field(description="Why, in one word.", max_length=256)]
    message: Annotated[str, Field(description="Why, in a sentence.", max_length=MESSAGE_LIMIT)]
    failed_at: Annotated[str, Field(description="When it was left.", json_schema_extra=_TIME)]
    retained_until: Annotated[
        str, Field(description="How long one of its workers stays.", json_schema_extra=_TIME)
    ]


class FinishedUpdate(ApiModel):
    """An update that is over."""

    from_revision: Annotated[RevisionName, Field(description="Revision that served before.")]
    to_revision: Annotated[RevisionName, Field(description="Revision that was to take over.")]
    from_anchor: Annotated[
        AnchorVersion | None, Field(description="Anchor that the former had; absent where it had none.")
    ] = None
    to_anchor: Annotated[
        AnchorVersion | None, Field(description="Anchor that the latter had; absent where it had none.")
    ] = None
    end: Annotated[End, Field(description="How it ended.")]
    reason: Annotated[str, Field(description="Why, in one word.", max_length=256)]
    message: Annotated[str, Field(description="Why, in a sentence.", max_length=1024)] = ""
    samples: Annotated[int, Field(description="Answers of the canary that were counted.", ge=0)] = 0
    duration_seconds: Annotated[int, Field(description="How long it took, in seconds.", ge=0)] = 0
    finished_at: Annotated[str, Field(description="When it was over.", json_schema_extra=_TIME)]
    decided_by: Annotated[str, Field(description="Who or what decided.", max_length=256)]
