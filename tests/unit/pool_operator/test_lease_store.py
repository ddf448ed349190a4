from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from kubernetes.aio.client import V1Lease, V1LeaseSpec, V1ObjectMeta
from kubernetes.aio.client.exceptions import ApiException

from zerolayer_operator.lease import LeaseRecord, LeaseUnavailableError
from zerolayer_operator.lease_store import _answer, _to_lease, _to_record

SECOND = datetime(2026, 1, 1, tzinfo=UTC)


def test_record_and_lease_say_the_same() -> None:
    time = SECOND + timedelta(microseconds=5)
    record = LeaseRecord("a", 15, 2, acquired=time, renewed=time, version="7")
    assert _to_record(_to_lease("n", record)) == record


def test_times_always_have_microseconds() -> None:
    lease = _to_lease("n", LeaseRecord("a", 15, 0, acquired=SECOND, renewed=SECOND))
    assert lease.spec is not None
    assert lease.spec.renew_time == SECOND + timedelta(microseconds=1)
    assert lease.metadata is not None
    assert lease.metadata.resource_version is None


@pytest.mark.parametrize(
    "lease",
    [V1Lease(), V1Lease(spec=V1LeaseSpec()), V1Lease(metadata=V1ObjectMeta(name="n"), spec=V1LeaseSpec())],
    ids=["empty", "empty spec", "no version"],
)
def test_lease_without_fields_reads_as_free(lease: V1Lease) -> None:
    record = _to_record(lease)
    assert (record.holder, record.duration_s, record.transitions, record.version) == ("", 0, 0, "")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ApiException(status=409, reason="Conflict"), None),
        (ApiException(status=403, reason="Forbidden"), "the API server answers 403"),
        (ApiException(status=500, reason="x"), "the API server answers 500"),
        (aiohttp.ServerDisconnectedError(), "ServerDisconnectedError"),
        (ConnectionRefusedError("no"), "ConnectionRefusedError: no"),
        (TimeoutError(), "TimeoutError"),
    ],
    ids=["conflict", "forbidden", "broken", "disconnected", "refused", "timeout"],
)
async def test_answers(error: Exception, told: str | None) -> None:
    async def request() -> V1Lease:
        raise error

    if told is None:
        assert await _answer(request(), 409) is None
    else:
        with pytest.raises(LeaseUnavailableError, match=told):
            await _answer(request(), 409)
