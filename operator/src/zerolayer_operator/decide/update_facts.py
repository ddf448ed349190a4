"""What an update depends on, where it goes next, and how many workers each side needs meanwhile."""

import hashlib
import json
import math
from dataclasses import dataclass
from datetime import datetime

from zerolayer_operator.api.update import UpdateSpec
from zerolayer_operator.api.update_status import (
    CheckStatus,
    FailedUpdate,
    FinishedUpdate,
    Outcome,
    UpdateStatus,
)
from zerolayer_operator.observe.state import Problem


@dataclass(frozen=True, slots=True)
class Side:
    """The workers of one revision.

    Attributes:
        size: How many it is to have; 0 where there is no Deployment.
        ready: How many can answer.
        current: Whether that is about the size as it stands now.
    """

    size: int = 0
    ready: int = 0
    current: bool = True

    def has(self, count: int) -> bool:
        """Whether it has grown to a size, and so many can answer."""
        return self.current and self.size >= count and self.ready >= count


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the evidence says of a canary.

    Attributes:
        evidence: What was counted, in a form that an operator which starts anew can read.
    """

    outcome: Outcome = Outcome.UNDECIDED
    reason: str = "NoData"
    message: str = "nothing has been counted yet"
    samples: int = 0
    checks: tuple[CheckStatus, ...] = ()
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What an update depends on.

    Attributes:
        now: The time.
        wanted: Revision that the spec asks for.
        serving: Revision that serves.
        settings: How updates are to go.
        blue: Workers of the revision that the update comes from.
        green: Workers of the one that it goes to.
        makeable: Whether the revision that the spec asks for can be made.
        most: Most workers that a revision may have: the fixed size, or the autoscaler's upper bound.
        record: The update as the status has it; ``None`` while there is none.
        failed: The revision that failed, as the status has it.
        assessment: What the evidence says of the canary.
        refusal: Why workers of the new revision will never start, where they say so themselves.
        promote: Revision that a person has asked to promote.
        roll_back: Revision that a person has asked to leave.
    """

    now: datetime
    wanted: str
    serving: str
    settings: UpdateSpec
    blue: Side = Side()
    green: Side = Side()
    makeable: bool = True
    most: int = 1000
    record: UpdateStatus | None = None
    failed: FailedUpdate | None = None
    assessment: Assessment = Assessment()
    refusal: Problem | None = None
    promote: str | None = None
    roll_back: str | None = None


@dataclass(frozen=True, slots=True)
class Next:
    """Where an update goes from here.

    Attributes:
        serving: Revision that is to serve.
        record: The update; ``None`` where there is none any more, or none yet.
        failed: The revision that is not tried again.
        finished: The update that is over with this look.
    """

    serving: str
    record: UpdateStatus | None = None
    failed: FailedUpdate | None = None
    finished: FinishedUpdate | None = None


def canary_size(weight: int, blue: int) -> int:
    """Workers of the canary for its share of the requests, in percent, beside so many of the old revision."""
    return max(1, math.ceil(weight * blue / (100 - weight)))


def full_size(record: UpdateStatus, blue: int, most: int) -> int:
    """Workers that carry all the requests, when so many of the old revision carry its share of them.

    Args:
        record: The update, with the share that the canary gets.
        blue: Workers of the old revision.
        most: The most that a revision may have.
    """
    weight = min(record.weight, 99)
    return max(1, blue, min(math.ceil(blue * 100 / (100 - weight)), most))


def settings_hash(settings: UpdateSpec) -> str:
    """Stands for the way in which a canary is judged."""
    text = json.dumps(settings.to_wire(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def same_update(one: UpdateStatus, other: UpdateStatus) -> bool:
    """Whether both are the same update, be it further on."""
    return (one.from_revision, one.to_revision, one.started_at) == (
        other.from_revision,
        other.to_revision,
        other.started_at,
    )
