"""A pool that does not change costs the API server nothing."""

import pytest

from zerolayer_dev.testing.audit import WRITES, AuditLog
from zerolayer_dev.testing.pools import Pool
from zerolayer_dev.testing.release import Release
from zerolayer_dev.testing.waiting import wait_for

RESYNCS = 10


def resync_time(release: Release) -> float:
    """When the operator's last round over every pool ended, by its own metrics."""
    return release.metric("zerolayer_operator_resync_last_timestamp_seconds")


@pytest.mark.promise("steady-pool-is-free")
def test_steady_pool_is_free(serving_pool: Pool, release: Release, audit: AuditLog, figures) -> None:
    """Over ten resyncs of a steady fixed-size pool the operator writes nothing but its Lease."""
    serving_pool.wait_ready(1)
    last = wait_for(lambda: resync_time(release), what="a first resync", seconds=60)
    mark, version = audit.mark(), serving_pool.manifest["metadata"]["resourceVersion"]
    for _ in range(RESYNCS):
        last = wait_for(
            lambda: resync_time(release), until=lambda now, seen=last: now > seen, what="a resync", seconds=60
        )

    writes = [
        call
        for call in audit.calls(user=release.user, since=mark)
        if call.permission.verb in WRITES and call.permission.resource != "leases"
    ]
    reads = [call for call in audit.calls(user=release.user, since=mark) if call not in writes]
    figures(resyncs=RESYNCS, writes=len(writes), other_calls=len(reads))
    assert writes == []
    assert serving_pool.manifest["metadata"]["resourceVersion"] == version
