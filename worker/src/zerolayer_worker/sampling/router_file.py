"""The trained router's file: a linear map to the next token's entropy, and what it was made for."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import pydantic_core
import torch
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from zerolayer_worker.common.anchor import DIGEST_PATTERN
from zerolayer_worker.common.errors import RefusalError
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.common.reading import TooLargeError, read_bounded
from zerolayer_worker.sampling.router import RANGES

MAX_BYTES: Final = 32_768
FILE_NAME: Final = "router.safetensors"
FORMAT: Final = "1"
_LENGTH_BYTES: Final = 8

HIDDEN, EMBEDDING = "hidden", "embedding"
Theta = Annotated[float, Field(gt=0, lt=1000)]


class RouterReason(StrEnum):
    """Why a router's file is refused."""

    UNREADABLE = "RouterUnreadable"
    FOR_ANOTHER_MODEL = "RouterForAnotherModel"
    NOT_FINITE = "RouterNotFinite"


class RouterError(RefusalError):
    """A router can't be used."""

    def __init__(self, reason: RouterReason, message: str) -> None:
        super().__init__(reason, message)


class RouterMetadata(BaseModel):
    """The header's texts, each a JSON value.

    Attributes:
        format: of the file.
        model_digest: `sha256:…` of the one model whose states the weights are for.
        hidden_size: length of its states and embeddings.
        features: length of the vectors that are weighted: `hidden_size`, or less, where states are projected.
        seed: of the projection; not used where there is none.
        bias: entropy, in nats, of a state of zeros.
        theta: for each intent that is steered, its curve's.
        ranges: temperatures and min-p that the curves were fitted to; they have to be this worker's.
        r2: share of the entropy's variance explained on held-out text, as its maker measured it.
        tokens: how many tokens it was trained on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Annotated[str, StringConstraints(pattern=f"^{FORMAT}$")] = FORMAT
    model_digest: Annotated[str, StringConstraints(pattern=DIGEST_PATTERN)]
    hidden_size: Annotated[int, Field(gt=0, lt=2**20)]
    features: Annotated[int, Field(gt=0, lt=2**20)]
    seed: int = 0
    bias: float
    theta: dict[Intent, Theta]
    ranges: dict[Intent, dict[str, tuple[float, float]]]
    r2: float
    tokens: Annotated[int, Field(gt=0)]


@dataclass(frozen=True, slots=True)
class RouterFile:
    """A file's content.

    Attributes:
        metadata: what it says about itself.
        hidden: fp16 `[features]`: nats per unit of each feature of the final hidden state.
        embedding: fp16 `[features]`: the same of the previous token's embedding.
        digest: `sha256:…` of the file.
        size: of the file, in bytes.
    """

    metadata: RouterMetadata
    hidden: Tensor
    embedding: Tensor
    digest: str
    size: int


def ranges() -> dict[Intent, dict[str, tuple[float, float]]]:
    """This worker's, as a file holds them."""
    return {
        intent: {"temperature": bounds.temperature, "min_p": bounds.min_p}
        for intent, bounds in RANGES.items()
    }


def read_router(path: Path) -> RouterFile:
    """Reads and checks a file.

    Raises:
        RouterError: it can't be read, is larger than `MAX_BYTES`, of another format, for other ranges, or
            holds values that are not finite.
    """
    try:
        content = read_bounded(path, MAX_BYTES)
    except TooLargeError as error:
        raise _unreadable(path, f"{error}, so no router") from None
    except OSError as error:
        raise _unreadable(path, str(error.strerror or error)) from None
    try:
        tensors, metadata = load(content), RouterMetadata.model_validate(_texts(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _unreadable(path, f"metadata: {where}: {first['msg']}; train it again") from None
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _unreadable(path, f"not a router's safetensors file: {str(error)[:200]}") from None
    _check(path, tensors, metadata)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return RouterFile(metadata, tensors[HIDDEN], tensors[EMBEDDING], digest, len(content))


def write_router(path: Path, hidden: Tensor, embedding: Tensor, metadata: RouterMetadata) -> RouterFile:
    """Writes a file whole or not at all, and returns what `read_router` would.

    The same values give the same bytes.

    Raises:
        RouterError: a value is too large for fp16, or the file would be.
        OSError: it can't be written.
    """
    tensors = {HIDDEN: hidden.half().contiguous(), EMBEDDING: embedding.half().contiguous()}
    texts = {
        key: pydantic_core.to_json(value).decode() for key, value in metadata.model_dump(mode="json").items()
    }
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(_canonical(save(tensors, metadata=texts)))
        read_router(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return read_router(path)


def check_model(file: RouterFile, path: Path, digest: str, hidden_size: int) -> None:
    """Whether it is for the model of this digest.

    Raises:
        RouterError: it is for another.
    """
    made_for = file.metadata.model_digest
    if made_for != digest or file.metadata.hidden_size != hidden_size:
        raise RouterError(
            RouterReason.FOR_ANOTHER_MODEL,
            f"{path}: trained for the model {made_for}, this one is {digest}; train one with "
            "`zerolayer-worker router train`, or serve with --router-path none",
        )


def _check(path: Path, tensors: dict[str, Tensor], metadata: RouterMetadata) -> None:
    shapes = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}
    expected = ((metadata.features,), torch.float16)
    if shapes != {HIDDEN: expected, EMBEDDING: expected}:
        raise _unreadable(path, f"holds {shapes}, expected {HIDDEN} and {EMBEDDING} as {expected}")
    if metadata.ranges != ranges() or metadata.theta.keys() != RANGES.keys():
        raise _unreadable(path, "made for other ranges of the intents than this worker's; train it again")
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise RouterError(RouterReason.NOT_FINITE, f"{path}: {name} holds values that are not finite")


def _unreadable(path: Path, cause: str) -> RouterError:
    return RouterError(RouterReason.UNREADABLE, f"{path}: {cause}")


def _header(content: bytes) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    return pydantic_core.from_json(content[_LENGTH_BYTES : _LENGTH_BYTES + length]), length


def _texts(content: bytes) -> dict[str, object]:
    texts: dict[str, str] = _header(content)[0].get("__metadata__") or {}
    return {key: pydantic_core.from_json(text) for key, text in texts.items()}


def _canonical(content: bytes) -> bytes:
    """The same file with its header's keys in order: safetensors writes the metadata's in a random one."""
    header, length = _header(content)
    text = pydantic_core.to_json({key: dict(sorted(value.items())) for key, value in sorted(header.items())})
    text += b" " * (-len(text) % _LENGTH_BYTES)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text + content[_LENGTH_BYTES + length :]
