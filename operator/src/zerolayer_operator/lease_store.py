"""The Lease that leader election runs on, in the API server."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import aiohttp
from kubernetes.aio.client.exceptions import ApiException

from zerolayer_operator.lease import LeaseRecord, LeaseUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from kubernetes.aio.client import V1Lease
    from kubernetes.aio.client.api_client import ApiClient

_NOT_FOUND = 404
_CONFLICT = 409
_NEVER = datetime.fromtimestamp(0, UTC)


class KubernetesLeaseStore:
    """A `LeaseStore` on the API server; `resourceVersion` makes its writes safe.

    Args:
        client: The connection.
        namespace: Namespace of the Lease.
        name: Name of the Lease.
    """

    def __init__(self, client: "ApiClient", namespace: str, name: str) -> None:
        from kubernetes.aio.client import CoordinationV1Api  # noqa: PLC0415 - costs memory where unused

        self._api = CoordinationV1Api(client)
        self._namespace = namespace
        self._name = name

    async def read(self) -> LeaseRecord | None:
        """Returns the Lease, or None where there is none."""
        lease = await _answer(self._api.read_namespaced_lease(self._name, self._namespace), _NOT_FOUND)
        return None if lease is None else _to_record(lease)

    async def write(self, record: LeaseRecord) -> LeaseRecord | None:
        """Creates or replaces the Lease; None where somebody else was faster."""
        body = _to_lease(self._name, record)
        if record.version:
            # The API server makes a Lease anew that was deleted since it was read.
            request = self._api.replace_namespaced_lease(self._name, self._namespace, body)
            lease = await _answer(request, _CONFLICT)
        else:
            lease = await _answer(self._api.create_namespaced_lease(self._namespace, body), _CONFLICT)
        return None if lease is None else _to_record(lease)


async def _answer(request: "Awaitable[V1Lease]", *none_on: int) -> "V1Lease | None":
    """Awaits a request; answers with one of the statuses `none_on` become None."""
    try:
        return await request
    except ApiException as error:
        status = cast("int | None", error.status)  # pyright: ignore[reportUnknownMemberType]
        if status in none_on:
            return None
        raise LeaseUnavailableError(f"the API server answers {status}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise LeaseUnavailableError(f"{type(error).__name__}: {error}") from error


def _to_lease(name: str, record: LeaseRecord) -> "V1Lease":
    from kubernetes.aio.client import V1Lease, V1LeaseSpec, V1ObjectMeta  # noqa: PLC0415

    return V1Lease(
        metadata=V1ObjectMeta(name=name, resource_version=record.version or None),
        spec=V1LeaseSpec(
            holder_identity=record.holder,
            lease_duration_seconds=record.duration_s,
            lease_transitions=record.transitions,
            acquire_time=_micro_time(record.acquired),
            renew_time=_micro_time(record.renewed),
        ),
    )


def _micro_time(moment: datetime) -> datetime:
    """The API server wants six digits of a second; `isoformat` leaves them out where they are all zero."""
    return moment if moment.microsecond else moment.replace(microsecond=1)


def _to_record(lease: "V1Lease") -> LeaseRecord:
    """Reads a Lease; one that lacks fields, as after an edit by hand, reads as free to be taken."""
    spec, metadata = lease.spec, lease.metadata
    return LeaseRecord(
        holder=(spec.holder_identity if spec else None) or "",
        duration_s=(spec.lease_duration_seconds if spec else None) or 0,
        transitions=(spec.lease_transitions if spec else None) or 0,
        acquired=(spec.acquire_time if spec else None) or _NEVER,
        renewed=(spec.renew_time if spec else None) or _NEVER,
        version=(metadata.resource_version if metadata else None) or "",
    )
