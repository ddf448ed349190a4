"""The chart with gateways, for the tests of this folder."""

from collections.abc import Iterator

import pytest

from zerolayer_dev.testing.release import Release, Values


@pytest.fixture(scope="package", autouse=True)
def with_gateway(release: Release, chart_values: Values) -> Iterator[None]:
    """Pools may name Gateways while these tests run; canaries are looked at often."""
    release.install({**chart_values, "gateway": {"enabled": True}, "canaryInterval": 5})
    yield
    # The rights go before the process that uses them does.
    with release.upheaval():
        release.install(chart_values)
