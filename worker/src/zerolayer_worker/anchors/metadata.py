"""What a bundle says about itself."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

import pydantic_core
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from zerolayer_worker.common.anchor import DIGEST_PATTERN, NAME_PATTERN, BundleError, BundleReason

FORMAT_KEY: Final = "anchor_format"
FORMAT: Final = "1"
MAX_FIGURES: Final = 64


def _from_json(value: object) -> object:
    return pydantic_core.from_json(value) if isinstance(value, str) else value


Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
Digest = Annotated[str, StringConstraints(pattern=DIGEST_PATTERN)]
Figure = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,64}$")]


class BundleMetadata(BaseModel):
    """The texts in a bundle's safetensors header.

    Attributes:
        name: what the bundle is called, whatever its version.
        version: shown to clients in `x-zero-layer-anchor`, and a label's value in Kubernetes.
        base_model_digest: `/version`'s `model.digest` of the one model the values belong to.
        created: when it was made.
        dtype: type of every tensor.
        training_data_digest: `sha256:…` of the facts; None where it was not trained from a file.
        evaluation: figures by name (`hit_rate`, …) as its maker measured them; nothing checks them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: Name
    version: Name
    base_model_digest: Digest
    created: AwareDatetime
    dtype: Literal["float32", "bfloat16", "float16"]
    training_data_digest: Digest | None = None
    evaluation: Annotated[
        dict[Figure, float], BeforeValidator(_from_json), Field(default_factory=dict, max_length=MAX_FIGURES)
    ]

    def texts(self) -> dict[str, str]:
        """The header's `__metadata__`, where every value is a text."""
        values = self.model_dump(mode="json", exclude_none=True, exclude={"evaluation"})
        figures = pydantic_core.to_json(dict(sorted(self.evaluation.items()))).decode()
        return {FORMAT_KEY: FORMAT, **values, "evaluation": figures}

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> Self:
        """Reads what `texts` wrote.

        Raises:
            BundleError: `AnchorUnreadable`, for another format, or a value that is missing or malformed.
        """
        if texts.get(FORMAT_KEY) != FORMAT:
            found = texts.get(FORMAT_KEY)
            shown = "no anchor bundle" if found is None else f"an anchor bundle of format {found[:20]!r}"
            raise BundleError(
                BundleReason.UNREADABLE, f"the file is {shown}; this worker reads format {FORMAT}"
            )
        try:
            return cls.model_validate({key: text for key, text in texts.items() if key != FORMAT_KEY})
        except ValidationError as error:
            raise BundleError(BundleReason.UNREADABLE, f"metadata: {_explain(error)}") from None


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))[:100]}: {first['msg'][:200]}"
