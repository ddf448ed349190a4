"""The report of a golden set's run: what `zerolayer-worker golden run` ends with."""

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from zerolayer_operator.api.anchor import AnchorDigest

LIMIT_BYTES: Final = 4096
"""What a container may leave behind as its last word."""

MAX_QUESTIONS: Final = 100_000

_Count = Annotated[int, Field(ge=0, le=MAX_QUESTIONS)]
_Cosine = Annotated[float, Field(ge=-1.001, le=1.001)]
_Ids = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9._-]+$")], ...],
    Field(max_length=64),
]


class ReportError(ValueError):
    """It is no report; the message goes on from what it is, and says why."""


class _Part(BaseModel):
    """A part of the report; a worker of another version may tell more."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class SideAnswers(_Part):
    """How one revision answered.

    Attributes:
        expected: Questions with an expected answer.
        right: Those that it answered as expected.
        unanswered: Questions of any kind that it gave no answer to.
    """

    expected: _Count
    right: _Count
    unanswered: _Count = 0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.right > self.expected:
            raise ValueError("more right answers than questions that have one")
        return self


class GreenAnswers(SideAnswers):
    """How the canary answered.

    Attributes:
        repeated: Questions that it was asked twice.
        different: Those whose second answer was another.
    """

    repeated: _Count = 0
    different: _Count = 0

    @model_validator(mode="after")
    def _check_repeats(self) -> Self:
        if self.different > self.repeated:
            raise ValueError("more different answers than repeated questions")
        return self


class Similarity(_Part):
    """How similar both revisions' answers are to questions whose answer should not change.

    Attributes:
        kept: Such questions.
        mean: Mean cosine of both sides' answers.
        threshold: The cosine below which answers differ by more than the base model's own do.
    """

    kept: Annotated[int, Field(ge=1, le=MAX_QUESTIONS)]
    mean: _Cosine
    threshold: _Cosine


class GoldenReport(_Part):
    """What both revisions answered.

    Attributes:
        set_digest: Digest of the file with the questions.
        similarity: ``None`` where every question has an expected answer.
        wrong: Some of the questions that the canary did not answer as expected.
        drifted: Some of those whose answers differ more than they should.
        different: Some of those that it answered differently when it was asked again.
    """

    format: Literal[1]
    set_digest: Annotated[AnchorDigest, Field(alias="set")]
    blue: SideAnswers
    green: GreenAnswers
    similarity: Similarity | None = None
    wrong: _Ids = ()
    drifted: _Ids = ()
    different: _Ids = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.blue.expected != self.green.expected:
            raise ValueError("both sides were asked different questions")
        if not self.green.expected and self.similarity is None:
            raise ValueError("nothing was asked")
        return self


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
