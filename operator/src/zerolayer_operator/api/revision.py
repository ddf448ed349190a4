"""What identifies a revision: the user's inputs that need another pod, and nothing of the operator's own."""

import hashlib
import json
from typing import Any, Final

from zerolayer_operator.api.base import ApiModel
from zerolayer_operator.api.spec import PoolSpec

REVISION_FIELDS: Final = (
    "model",
    "anchor",
    "worker",
    "intents",
    "warmup",
    "terminationGracePeriodSeconds",
    "drainSeconds",
    "apiKeySecretRef",
)
"""Fields of the spec whose change makes a new revision."""

LIVE_FIELDS: Final = ("replicas", "autoscaling", "disruption", "update", "routing", "paused")
"""Fields of the spec whose change leaves pods alone."""

HASH_LENGTH: Final = 10


class FrozenAnchor(ApiModel):
    """A revision's anchor: version and digest of its bundle."""

    version: str
    digest: str


class FrozenInputs(ApiModel):
    """What was resolved once for a revision.

    Attributes:
        image: Worker image, with its digest where the registry could be asked.
        model_commit: Commit of the model's repository on the Hugging Face hub, where it comes from there.
        model_image: The same for the model's image, where it comes from one.
        anchor_image: The same for the anchor's image, where it comes from one.
        unpinned: Which images have no digest, and why.
        anchor: The revision's anchor, where it has one.
        anchor_copy: The ConfigMap that holds the copy of its bundle, where it came from one.
    """

    image: str
    model_commit: str | None = None
    model_image: str | None = None
    anchor_image: str | None = None
    unpinned: str | None = None
    anchor: FrozenAnchor | None = None
    anchor_copy: str | None = None


def revision_inputs(spec: PoolSpec) -> dict[str, Any]:
    """The part of a spec that needs another pod.

    Values that equal their default are left out, so that a field added to the API later with a default
    doesn't give every pool a new revision. An absent worker image stays absent: a new default is no new
    revision.
    """
    dumped = spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return {field: dumped[field] for field in REVISION_FIELDS if field in dumped}


def revision_hash(spec: PoolSpec) -> str:
    """The revision's name: a hash of its inputs, the same after a restart and in every version."""
    text = json.dumps(revision_inputs(spec), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]
