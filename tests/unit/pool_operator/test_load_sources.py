"""Who is asked about a pool's load."""

import base64
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import AsyncMock

import pytest

from zerolayer_operator.api.prometheus import PrometheusSpec
from zerolayer_operator.kube import ApiServerError
from zerolayer_operator.observe.load_source import LoadTarget
from zerolayer_operator.observe.load_sources import LoadSources, Unusable
from zerolayer_operator.observe.prometheus import Access, PrometheusLoad
from zerolayer_operator.observe.scraped_load import ScrapedLoad

ALLOWED = ("https://thanos", "http://prometheus:9090/")
REFERENCE = {"name": "prometheus", "key": "token"}


class Secrets:
    """The API server, as far as Secrets go."""

    def __init__(self, **data: str) -> None:
        self._data = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}

    async def get(self, _kind: object, _namespace: str, _name: str) -> dict[str, Any]:
        return {"data": self._data}


def named(**fields: Any) -> PrometheusSpec:
    return PrometheusSpec.model_validate(fields)


def sources(*addresses: str, **data: str) -> LoadSources:
    kube: Any = Secrets(**data)
    return LoadSources(kube, 8081, addresses)


@pytest.fixture
async def open_sources() -> AsyncIterator[LoadSources]:
    made = sources(*ALLOWED, token=" secret\n")
    yield made
    await made.close()


async def test_workers_themselves_where_there_is_no_prometheus() -> None:
    made = sources()
    choice = await made.choose("ns", None)
    assert choice is None
    assert isinstance(made.source(choice), ScrapedLoad)
    await made.close()


async def test_first_address_for_pools_that_name_none(open_sources: LoadSources) -> None:
    assert await open_sources.choose("ns", None) == Access("https://thanos")


async def test_named_one_with_its_token(open_sources: LoadSources) -> None:
    prometheus = named(address="http://prometheus:9090", bearer_token_secret_ref=REFERENCE)
    choice = await open_sources.choose("ns", prometheus)
    assert choice == Access("http://prometheus:9090", token="secret")
    assert isinstance(open_sources.source(choice), PrometheusLoad)
    assert open_sources.source(choice) is open_sources.source(choice)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"address": "http://10.0.0.1"}, "is not among those that this cluster's operator allows"),
        ({"bearer_token_secret_ref": {"name": "prometheus", "key": "other"}}, "has no key other; correct"),
    ],
)
async def test_one_that_cannot_be_asked_leaves_the_load_unknown(
    open_sources: LoadSources, fields: dict[str, Any], reason: str
) -> None:
    choice = await open_sources.choose("ns", named(**fields))
    assert isinstance(choice, Unusable)
    load = open_sources.source(choice).load(LoadTarget("ns", "pool", "rev"))
    assert reason in (load.unknown or "")
    assert not load.pending


async def test_secret_that_may_not_be_read_leaves_the_load_unknown() -> None:
    made = sources(*ALLOWED)
    kube: Any = made._kube
    kube.get = AsyncMock(side_effect=ApiServerError(403, "secrets is forbidden"))
    choice = await made.choose("ns", named(bearer_token_secret_ref=REFERENCE))
    assert isinstance(choice, Unusable)
    assert "secrets is forbidden; let the operator read it" in choice.reason
    kube.get = AsyncMock(side_effect=ApiServerError(500, "etcd"))
    with pytest.raises(ApiServerError):
        await made.choose("ns", named(bearer_token_secret_ref=REFERENCE))
    await made.close()


async def test_what_no_pool_uses_any_more_is_forgotten(open_sources: LoadSources) -> None:
    old, new = Access("http://a", token="1"), Access("http://a", token="2")
    kept, dropped = open_sources.source(new), open_sources.source(old)
    open_sources.keep([new, None])
    assert open_sources.source(new) is kept
    assert open_sources.source(old) is not dropped


@pytest.mark.parametrize("token", ["", "  ", "one\ntwo", "schlüssel", "\ufefftoken", "a\0b", "a\x7f"])
async def test_what_no_header_can_hold_is_no_token(token: str) -> None:
    made = sources(*ALLOWED, token=token)
    choice = await made.choose("ns", named(bearer_token_secret_ref=REFERENCE))
    assert choice == Unusable("key token of Secret prometheus is no bearer token; correct it")
    await made.close()
