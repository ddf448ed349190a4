"""How requests from outside of the cluster reach a pool."""

from typing import Annotated

from pydantic import Field

from zerolayer_operator.api.base import ApiModel
from zerolayer_operator.api.types import DNS_1123_SUBDOMAIN, ObjectName

Hostname = Annotated[
    str, Field(min_length=1, max_length=253, pattern=rf"^(\*\.)?{DNS_1123_SUBDOMAIN.removeprefix('^')}")
]


class ParentReference(ApiModel):
    """A Gateway that the pool's route attaches to."""

    name: Annotated[ObjectName, Field(description="Name of the Gateway.")]
    namespace: Annotated[
        str | None,
        Field(
            description="Namespace of the Gateway; the pool's own if absent.",
            min_length=1,
            max_length=63,
            pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        ),
    ] = None
    section_name: Annotated[
        ObjectName | None, Field(description="Listener of the Gateway; every one if absent.")
    ] = None
    port: Annotated[
        int | None, Field(description="Port of the listener; every one if absent.", ge=1, le=65535)
    ] = None


class GatewaySpec(ApiModel):
    """Routes requests through the Gateway API."""

    parent_refs: Annotated[
        tuple[ParentReference, ...],
        Field(description="Gateways that the pool's HTTPRoute attaches to.", min_length=1, max_length=8),
    ]
    hostnames: Annotated[
        tuple[Hostname, ...],
        Field(description="Host names that the route is for; every one if empty.", max_length=16),
    ] = ()


class RoutingSpec(ApiModel):
    """How requests from outside of the cluster reach the pool."""

    gateway: Annotated[
        GatewaySpec,
        Field(
            description="An HTTPRoute for the pool, where the Gateway API is installed: exact weights during "
            "an update, and conversations that stay with the revision they name."
        ),
    ]
