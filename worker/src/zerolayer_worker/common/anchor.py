"""A knowledge anchor's identity, and why one is refused; no tensors, for every layer speaks of them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from zerolayer_worker.common.errors import RefusalError

NAME_PATTERN: Final = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
"""What a bundle's name and version look like: safe as a Kubernetes label value and in an HTTP header."""

DIGEST_PATTERN: Final = r"^sha256:[0-9a-f]{64}$"


@dataclass(frozen=True, slots=True)
class Anchor:
    """A bundle by the version its maker gave it and `sha256:…` of its file; the digest is the identity."""

    version: str
    digest: str


class BundleReason(StrEnum):
    """Why a bundle is refused, in a word that a condition can carry."""

    UNREADABLE = "AnchorUnreadable"
    FOR_ANOTHER_MODEL = "AnchorForAnotherModel"
    UNKNOWN_TENSOR = "AnchorUnknownTensor"
    WRONG_SHAPE = "AnchorWrongShape"
    NOT_FINITE = "AnchorNotFinite"
    DIGEST_MISMATCH = "AnchorDigestMismatch"
    VERSION_MISMATCH = "AnchorVersionMismatch"


class BundleError(RefusalError):
    """A bundle can't be used."""

    def __init__(self, reason: BundleReason, message: str) -> None:
        super().__init__(reason, message)
