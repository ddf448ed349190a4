"""The report of a golden set's run: what `zerolayer-worker golden run` ends with."""

from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from zerolayer_operator.api.anchor import AnchorDigest

LIMIT_BYTES: Final = 4096
"""What a container may leave behind as its last word."""

MAX_QUESTIONS: Final = 100_000

_Count = Annotated[int, Field(ge=0, le=MAX_QUESTIONS)]
_Cosine = Annotated[float, Field(ge=-1.001, le=1.001)]


class ReportError(ValueError):
    """It is no report; the message goes on from what it is, and says why."""


class _Part(BaseModel):
    """A part of the report; a worker of another version may tell more."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class SideAnswers(_Part):
    """How one revision answered; each question was asked twice.

    Attributes:
        asked: Questions.
        hits: Those that it answered as expected.
        errors: Those that it gave no answer to.
        repeats_differ: Those whose second answer was another.
    """

    asked: Annotated[int, Field(ge=1, le=MAX_QUESTIONS)]
    hits: _Count
    errors: _Count
    repeats_differ: Annotated[_Count, Field(alias="repeatsDiffer")]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if max(self.hits, self.repeats_differ) + self.errors > self.asked:
            raise ValueError("more answers than questions")
        return self


class Similarity(_Part):
    """How similar both revisions' answers are to questions whose answer should not change.

    Attributes:
        kept: Such questions.
        mean: Mean cosine of both sides' answers; ``None`` where there are none.
        threshold: The cosine below which answers differ by more than the base model's own do.
    """

    kept: _Count
    mean: _Cosine | None
    threshold: _Cosine


class Failing(_Part):
    """A question that speaks against the canary, and why."""

    id: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9._-]+$")]
    why: Annotated[str, Field(max_length=512)]


class GoldenReport(_Part):
    """What both revisions answered.

    Attributes:
        set_digest: Digest of the file with the questions.
        expected: Questions with an expected answer.
        failing: Some of the questions that speak against the canary.
    """

    set_digest: Annotated[AnchorDigest, Field(alias="set")]
    expected: _Count
    blue: SideAnswers
    green: SideAnswers
    similarity: Similarity
    failing: Annotated[tuple[Failing, ...], Field(max_length=256)] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.blue.asked != self.green.asked:
            raise ValueError("both sides were asked different questions")
        if max(self.blue.hits, self.green.hits) > self.expected:
            raise ValueError("more right answers than questions that have one")
        return self

    @property
    def incomplete(self) -> str:
        """Which side left questions unanswered, for people; empty where none did."""
        sides = (("green", self.green), ("blue", self.blue))
        left = [f"{side.errors} of {side.asked} on {name}" for name, side in sides if side.errors]
        return " and ".join(left)


def read_report(text: str) -> GoldenReport:
    """The report that a container left behind.

    Raises:
        ReportError: It is none.
    """
    if not text.strip():
        raise ReportError("is empty")
    if len(text.encode(errors="replace")) > 2 * LIMIT_BYTES:
        raise ReportError(f"has more than {LIMIT_BYTES} bytes")
    try:
        return GoldenReport.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ReportError(
            f"is none: {where}: {first['msg']}" if where else f"is none: {first['msg']}"
        ) from None
