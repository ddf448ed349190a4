"""The knowledge anchor: a small bundle of norm weights that is laid over the model's own."""

from typing import Annotated, Final

from pydantic import Field

from zerolayer_operator.api.base import ApiModel, Rule
from zerolayer_operator.api.model import PullPolicy
from zerolayer_operator.api.types import ImageReference, ObjectName, RelativePath, SecretKey, stays_inside

ANCHOR_VERSION: Final = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
"""Safe as the value of a header and of a label."""

AnchorVersion = Annotated[str, Field(min_length=1, max_length=63, pattern=ANCHOR_VERSION)]
AnchorDigest = Annotated[str, Field(min_length=71, max_length=71, pattern=r"^sha256:[0-9a-f]{64}$")]

DEFAULT_KEY: Final = "bundle.safetensors"


def _no_parent(field: str) -> Rule:
    return Rule(
        cel="!self.path.split('/').exists(part, part == '..')",
        message=f"{field}.path must not contain '..'",
        holds=lambda source: stays_inside(source.path),
    )


class AnchorConfigMap(ApiModel):
    """A bundle in a ConfigMap."""

    name: Annotated[
        ObjectName,
        Field(
            description="ConfigMap in the pool's namespace. It is copied once for each revision, so that it "
            "may be edited or deleted afterwards."
        ),
    ]
    key: Annotated[SecretKey, Field(description="Key of its binaryData that holds the bundle.")] = DEFAULT_KEY


class AnchorClaim(ApiModel):
    """A bundle on a PersistentVolumeClaim."""

    rules = (_no_parent("spec.anchor.source.persistentVolumeClaim"),)

    claim_name: Annotated[
        ObjectName,
        Field(description="PersistentVolumeClaim in the pool's namespace, mounted read-only."),
    ]
    path: Annotated[RelativePath, Field(description="The bundle's file on the volume.")]


class AnchorImage(ApiModel):
    """A bundle inside an OCI image."""

    rules = (_no_parent("spec.anchor.source.image"),)

    reference: Annotated[
        ImageReference,
        Field(
            description="OCI image that holds the bundle, which has to have spec.anchor.digest. A tag is "
            "resolved to a digest once for each revision, where the registry can be asked."
        ),
    ]
    path: Annotated[RelativePath, Field(description="The bundle's file inside the image.")]
    pull_policy: Annotated[
        PullPolicy | None,
        Field(description="When nodes pull the image; Kubernetes' own default for the tag if absent."),
    ] = None


SOURCE_KINDS: Final = ("configMap", "persistentVolumeClaim", "image")
_COUNT: Final = " + ".join(f"(has(self.{kind}) ? 1 : 0)" for kind in SOURCE_KINDS)


class AnchorSource(ApiModel):
    """Where the bundle comes from: exactly one kind."""

    rules = (
        Rule(
            cel=f"{_COUNT} == 1",
            message=f"spec.anchor.source must name exactly one of {', '.join(SOURCE_KINDS)}",
            holds=lambda source: len(source.to_wire()) == 1,
        ),
    )

    config_map: Annotated[
        AnchorConfigMap | None, Field(description="A ConfigMap with the bundle, of at most 1 MiB.")
    ] = None
    persistent_volume_claim: Annotated[
        AnchorClaim | None, Field(description="A PersistentVolumeClaim with the bundle.")
    ] = None
    image: Annotated[
        AnchorImage | None,
        Field(description="An OCI image with the bundle, mounted as a volume where nodes support it."),
    ] = None


class AnchorSpec(ApiModel):
    """The knowledge anchor that workers lay over the model."""

    version: Annotated[
        AnchorVersion,
        Field(
            description="Version that answers name in the header x-zero-layer-anchor; the bundle's own "
            "metadata has to name the same."
        ),
    ]
    digest: Annotated[
        AnchorDigest,
        Field(description="Digest of the bundle's file: sha256: and 64 hexadecimal digits."),
    ]
    source: Annotated[AnchorSource, Field(description="Where the bundle comes from: exactly one kind.")]
