"""Checks that what a spec refers to exists, asking only for the names it mentions."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from zerolayer_operator.api.kinds import CLAIM, SECRET, Kind
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.types import DNS_1123_SUBDOMAIN
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.state import Problem

_NAME: Final = re.compile(DNS_1123_SUBDOMAIN)


@dataclass(frozen=True, slots=True)
class Reference:
    """An object in the pool's namespace that a field of the spec names."""

    kind: Kind
    name: str
    field: str


def references(spec: PoolSpec) -> Iterator[Reference]:
    """The objects that workers can't start, or the pool can't be autoscaled, without."""
    source = spec.model.source
    if source.persistent_volume_claim is not None:
        yield Reference(
            CLAIM,
            source.persistent_volume_claim.claim_name,
            "spec.model.source.persistentVolumeClaim.claimName",
        )
    if source.hugging_face is not None and source.hugging_face.token_secret_ref is not None:
        yield Reference(
            SECRET,
            source.hugging_face.token_secret_ref.name,
            "spec.model.source.huggingFace.tokenSecretRef.name",
        )
    anchor = spec.anchor.source.persistent_volume_claim if spec.anchor is not None else None
    if anchor is not None:
        yield Reference(CLAIM, anchor.claim_name, "spec.anchor.source.persistentVolumeClaim.claimName")
    yield from _of_prometheus(spec)
    if spec.api_key_secret_ref is not None:
        yield Reference(SECRET, spec.api_key_secret_ref.name, "spec.apiKeySecretRef.name")
    for secret in spec.worker.image_pull_secrets or ():
        yield Reference(SECRET, str(secret["name"]), "spec.worker.imagePullSecrets")


def _of_prometheus(spec: PoolSpec) -> Iterator[Reference]:
    named = spec.autoscaling.prometheus if spec.autoscaling is not None else None
    if named is None:
        return
    field = "spec.autoscaling.prometheus"
    if named.bearer_token_secret_ref is not None:
        yield Reference(SECRET, named.bearer_token_secret_ref.name, f"{field}.bearerTokenSecretRef.name")
    if named.tls is not None and named.tls.ca_secret_ref is not None:
        yield Reference(SECRET, named.tls.ca_secret_ref.name, f"{field}.tls.caSecretRef.name")
    if named.tls is not None and named.tls.certificate_secret_ref is not None:
        yield Reference(
            SECRET, named.tls.certificate_secret_ref.name, f"{field}.tls.certificateSecretRef.name"
        )


async def missing(kube: Kube, namespace: str, spec: PoolSpec) -> tuple[Problem, ...]:
    """A problem for each reference to nothing.

    Raises:
        ApiServerError: The API server refuses or can't be reached.
    """
    wanted = tuple(references(spec))
    found = await asyncio.gather(*(_exists(kube, namespace, item) for item in wanted))
    return tuple(_problem(item, namespace) for item, exists in zip(wanted, found, strict=True) if not exists)


async def _exists(kube: Kube, namespace: str, item: Reference) -> bool:
    """Whether the object exists; what is no name is not asked for: `../x` would lead out of the namespace."""
    return _NAME.fullmatch(item.name) is not None and await kube.exists(item.kind, namespace, item.name)


def _problem(item: Reference, namespace: str) -> Problem:
    return Problem(
        f"{item.kind.kind}NotFound",
        f"{item.field} names {item.kind.kind} {item.name}, which namespace {namespace} doesn't have; create "
        "it or correct the name",
    )
