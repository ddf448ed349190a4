"""Which answers of the API server are final, and what it says in them."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.exceptions import ApiException

from zerolayer_operator.api.kinds import DEPLOYMENT, EXTERNAL_METRICS
from zerolayer_operator.kube import ApiServerError, Kube, _yaml


@pytest.mark.parametrize(
    ("status", "message", "refused"),
    [
        (422, "Deployment is invalid", True),
        (403, "exceeded quota", True),
        (413, "Request entity too large", True),
        (500, "failed to create typed patch object: .spec.x: field not declared in schema", True),
        (500, "failed calling webhook", False),
        (429, "too many requests", False),
        (0, "no answer", False),
    ],
)
def test_refusal_is_told_from_what_may_pass(status: int, message: str, refused: bool) -> None:
    assert ApiServerError(status, message).refused is refused


class Refusing:
    """An API server that answers every request with one Status object."""

    def __init__(self, code: int = 422, **status: object) -> None:
        self._code = code
        self._status = status

    async def request(self, *_: object, **__: object) -> None:
        error = ApiException(status=self._code)
        error.body = json.dumps(self._status)
        raise error


async def refusal(**status: object) -> str:
    """What is told of a request that is refused."""
    async with ApiClient() as client:
        kube = Kube(client)
        kube._client = Refusing(**status)  # type: ignore[assignment]
        with pytest.raises(ApiServerError) as refused:
            await kube.apply(DEPLOYMENT, {"metadata": {"name": "d", "namespace": "n"}})
    return refused.value.message


async def test_causes_are_told_in_one_order_whatever_order_they_come_in() -> None:
    causes = [{"field": "spec.b", "message": "too large"}, {"field": "spec.a", "message": "too small"}]
    told = {
        await refusal(message='Deployment.apps "d" is invalid: [in, any order]', details={"causes": order})
        for order in (causes, causes[::-1])
    }

    assert told == {'Deployment.apps "d" is invalid: spec.a: too small, spec.b: too large'}


@pytest.mark.parametrize("causes", [None, [], [{"field": "spec.a", "message": "too small"}]])
async def test_message_without_several_causes_is_told_as_it_is(causes: object) -> None:
    assert await refusal(message="d is invalid: spec.a", details={"causes": causes}) == "d is invalid: spec.a"


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())))
def test_what_is_applied_is_json_and_printable_yaml(body: dict[str, object]) -> None:
    text = _yaml(body)

    assert json.loads(text) == body
    assert yaml.reader.Reader.NON_PRINTABLE.search(text) is None
    assert "\\ud" not in text.replace("\\\\", "")


def test_half_a_character_is_none() -> None:
    assert json.loads(_yaml({"a": "x\ud83dy"})) == {"a": "x\ufffdy"}


@pytest.mark.parametrize(
    ("status", "message", "by_webhook"),
    [
        (500, 'Internal error occurred: failed calling webhook "x": connection refused', True),
        (403, 'admission webhook "x" denied the request', False),
        (500, "etcdserver: request timed out", False),
    ],
)
def test_webhook_that_does_not_answer_is_told_from_an_api_server_that_fails(
    status: int, message: str, by_webhook: bool
) -> None:
    assert ApiServerError(status, message).by_webhook is by_webhook


@pytest.mark.parametrize(("code", "registered"), [(404, False), (503, True)])
async def test_api_that_is_away_is_registered_all_the_same(code: int, registered: bool) -> None:
    async with ApiClient() as client:
        kube = Kube(client)
        kube._client = Refusing(code, message="no")  # type: ignore[assignment]
        assert await kube.registered(EXTERNAL_METRICS) is registered


async def test_api_server_that_fails_says_nothing_about_an_api() -> None:
    async with ApiClient() as client:
        kube = Kube(client)
        kube._client = Refusing(500, message="no")  # type: ignore[assignment]
        with pytest.raises(ApiServerError):
            await kube.registered(EXTERNAL_METRICS)
