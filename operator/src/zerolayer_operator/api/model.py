"""What a pool serves: the model's public name and where its weights come from."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from zerolayer_operator.api.base import ApiModel, Rule
from zerolayer_operator.api.types import (
    AbsolutePath,
    ImageReference,
    ObjectName,
    RelativePath,
    SecretKey,
    stays_inside,
)


class PullPolicy(StrEnum):
    """When a node pulls an image, as in a pod."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


def _no_parent(field: str) -> Rule:
    return Rule(
        cel="!has(self.path) || !self.path.split('/').exists(part, part == '..')",
        message=f"{field}.path must not contain '..'",
        holds=lambda source: source.path is None or stays_inside(source.path),
    )


class SecretKeyReference(ApiModel):
    """One key of a Secret in the pool's namespace."""

    name: Annotated[ObjectName, Field(description="Name of a Secret in the pool's namespace.")]
    key: Annotated[SecretKey, Field(description="Key inside the Secret whose value is used.")]


class ImageSource(ApiModel):
    """Weights inside an OCI image."""

    rules = (_no_parent("spec.model.source.image"),)

    reference: Annotated[
        ImageReference,
        Field(
            description="OCI image that holds the weights. A tag is resolved to a digest once for each "
            "revision where the operator may ask the registry; otherwise a digest is the safe choice."
        ),
    ]
    path: Annotated[
        RelativePath | None,
        Field(
            description="Folder inside the image that holds config.json and the weights; the root if absent."
        ),
    ] = None
    pull_policy: Annotated[
        PullPolicy | None,
        Field(description="When nodes pull the image; Kubernetes' own default for the tag if absent."),
    ] = None


class ClaimSource(ApiModel):
    """Weights on a PersistentVolumeClaim."""

    rules = (_no_parent("spec.model.source.persistentVolumeClaim"),)

    claim_name: Annotated[
        ObjectName,
        Field(
            description="PersistentVolumeClaim in the pool's namespace, mounted read-only into every worker."
        ),
    ]
    path: Annotated[
        RelativePath | None,
        Field(description="Folder on the volume that holds config.json and the weights; the root if absent."),
    ] = None


class HostPathSource(ApiModel):
    """Weights on the node's own disk."""

    rules = (_no_parent("spec.model.source.hostPath"),)

    path: Annotated[
        AbsolutePath,
        Field(
            description="Absolute folder on every node that holds the weights. For development: the only "
            "source that the restricted Pod Security level refuses, and only where the operator's chart is "
            "installed with allowHostPath=true."
        ),
    ]


class HuggingFaceSource(ApiModel):
    """Weights fetched from the Hugging Face hub."""

    repo: Annotated[
        str,
        Field(
            description="Repository on the hub, as owner/name; an init container fetches it before warm-up.",
            min_length=3,
            max_length=200,
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$",
        ),
    ]
    revision: Annotated[
        str,
        Field(
            description="Branch, tag or commit of the repository; resolved to a commit once per revision of "
            "the pool, so that every worker of it loads the same weights.",
            min_length=1,
            max_length=200,
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$",
        ),
    ] = "main"
    token_secret_ref: Annotated[
        SecretKeyReference | None,
        Field(description="Access token for a gated or private repository."),
    ] = None


class BuiltinSource(ApiModel):
    """Weights that the worker image carries."""

    name: Annotated[
        str,
        Field(
            description="Name of a model inside the worker image, for example smollm2-135m-instruct.",
            min_length=1,
            max_length=63,
            pattern=r"^[a-z0-9]([-._a-z0-9]*[a-z0-9])?$",
        ),
    ]


SOURCE_KINDS = ("image", "persistentVolumeClaim", "hostPath", "huggingFace", "builtin")
_COUNT = " + ".join(f"(has(self.{kind}) ? 1 : 0)" for kind in SOURCE_KINDS)
_SAME_KIND = " && ".join(f"has(self.{kind}) == has(oldSelf.{kind})" for kind in SOURCE_KINDS)


class ModelSource(ApiModel):
    """Where the weights come from: exactly one kind."""

    rules = (
        Rule(
            cel=f"{_COUNT} == 1",
            message=f"spec.model.source must name exactly one of {', '.join(SOURCE_KINDS)}",
            holds=lambda source: len(source.to_wire()) == 1,
        ),
        Rule(
            cel=_SAME_KIND,
            message="spec.model.source cannot change its kind; make a new pool for another kind of source",
            holds=None,
        ),
    )

    image: Annotated[
        ImageSource | None,
        Field(
            description="An OCI image with the weights, mounted as an image volume where nodes support it."
        ),
    ] = None
    persistent_volume_claim: Annotated[
        ClaimSource | None,
        Field(description="A PersistentVolumeClaim with the weights."),
    ] = None
    host_path: Annotated[
        HostPathSource | None,
        Field(
            description="A folder on the node with the weights; for development, and refused with a "
            "condition unless the operator's installation allows it."
        ),
    ] = None
    hugging_face: Annotated[
        HuggingFaceSource | None,
        Field(description="A repository on the Hugging Face hub with the weights."),
    ] = None
    builtin: Annotated[
        BuiltinSource | None,
        Field(description="A small model that the worker image carries; for trying things out."),
    ] = None


class ModelSpec(ApiModel):
    """The model of a pool."""

    name: Annotated[
        str,
        Field(
            description="Id that clients send as model; a request for any other id gets a not-found error.",
            min_length=1,
            max_length=128,
            pattern=r"^[A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?$",
        ),
    ]
    source: Annotated[
        ModelSource,
        Field(description="Where the weights come from: exactly one kind, which can't change later."),
    ]
