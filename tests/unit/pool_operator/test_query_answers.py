"""Asking Prometheus for one value, against servers in its place that misbehave."""

import asyncio
import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest

from zerolayer_dev.testing.raw_http import Answer, Request, drips, response, says, says_nothing, serving
from zerolayer_operator.api.prometheus import PrometheusSpec
from zerolayer_operator.kube import ApiServerError
from zerolayer_operator.observe.answered import QueryAnswer
from zerolayer_operator.observe.load_sources import Choice, Unusable
from zerolayer_operator.observe.prometheus import Access
from zerolayer_operator.observe.query_checks import Choose, QueryChecks

HOST = "127.0.0.1"


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def chosen(choice: Choice | ApiServerError) -> Choose:
    async def choose(_namespace: str, _named: PrometheusSpec | None) -> Choice:
        if isinstance(choice, ApiServerError):
            raise choice
        return choice

    return choose


async def ask(answer: Answer, threads: ThreadPoolExecutor, timeout_s: float = 5.0) -> QueryAnswer:
    async with serving(answer) as port:
        access = Access(f"http://{HOST}:{port}", token="secret")
        checks = QueryChecks(chosen(access), threads, timeout_s=timeout_s)
        return (await checks.ask("ns", None, {"mine": "up"}))["mine"]


def body(result: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def series(value: str) -> dict[str, object]:
    return {"metric": {"a": "b"}, "value": [1.5, value]}


async def test_the_query_is_asked_as_it_is(threads: ThreadPoolExecutor) -> None:
    asked: list[Request] = []

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        asked.append(request)
        writer.write(response(body([series("0.25")])))

    query = 'sum(rate(x{r="a"}[5m])) / 2 & =?'
    async with serving(answer) as port:
        access = Access(f"http://{HOST}:{port}/prefix/", token="secret")
        checks = QueryChecks(chosen(access), threads)
        assert await checks.ask("ns", None, {"mine": query}) == {"mine": QueryAnswer(0.25)}
    (request,) = asked
    assert request.target.startswith("/prefix/api/v1/query?")
    assert request.headers["authorization"] == "Bearer secret"
    parameters = parse_qs(urlsplit(request.target).query)
    assert (parameters["query"], parameters["partial_response"]) == ([query], ["false"])


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ([series("0.25")], 0.25),
        ([1.5, "7"], 7.0),
        ([series("+Inf")], math.inf),
        ([series("-Inf")], -math.inf),
    ],
)
async def test_values(result: object, value: float, threads: ThreadPoolExecutor) -> None:
    assert await ask(says(response(body(result))), threads) == QueryAnswer(value)


async def test_not_a_number(threads: ThreadPoolExecutor) -> None:
    found = await ask(says(response(body([series("NaN")]))), threads)
    assert found.value is not None
    assert math.isnan(found.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(response(body([])), "has no series for it", id="no series"),
        pytest.param(response(body([series("1")] * 3)), "has 3 series for it; have the query", id="several"),
        pytest.param(
            response(body([{"metric": {}, "values": [[1, "2"]]}])), "a range of values; have", id="a range"
        ),
        pytest.param(
            response(body([{"metric": {}, "histogram": [1, {}]}])), "a histogram; have", id="a histogram"
        ),
        pytest.param(response(body([1.5, "text"])), "a text, not a number", id="a string"),
        pytest.param(response(body([1.5, None])), "no answer to a query", id="no value"),
        pytest.param(response(body(["a"])), "no answer to a query", id="texts"),
        pytest.param(response(body({"a": 1})), "no answer to a query", id="other result"),
        pytest.param(response(body(None)), "no answer to a query", id="nothing"),
        pytest.param(response(b"[" * 100_000), "no answer to a query", id="deep"),
        pytest.param(response(b'{"error": "parse error"}', 400), "answers 400 (parse error)", id="bad query"),
        pytest.param(response(b"", 401), "refuses the operator (401)", id="401"),
        pytest.param(response(b" " * 1024 * 1025), "more than 1048576 bytes", id="huge"),
        pytest.param(b"", "can't be reached", id="closed at once"),
    ],
)
async def test_no_value(content: bytes, said: str, threads: ThreadPoolExecutor) -> None:
    found = await ask(says(content), threads)
    assert found.value is None
    assert found.unknown.startswith(f"Prometheus at http://{HOST}:")
    assert said in found.unknown
    assert "secret" not in found.unknown


@pytest.mark.parametrize("answer", [says_nothing, drips(response(body([series("1")])), 0.05)])
async def test_one_that_hangs_is_asked_once(answer: Answer, threads: ThreadPoolExecutor) -> None:
    async with serving(answer) as port:
        access = Access(f"http://{HOST}:{port}")
        checks = QueryChecks(chosen(access), threads, timeout_s=0.3, budget_s=1000)
        async with asyncio.timeout(20):
            found = await checks.ask("ns", None, dict.fromkeys("abcdefgh", "up"))
    assert {answer.unknown.partition("gives")[2] for answer in found.values()} == {
        " no answer within 0.3 s; look whether it is overloaded or out of reach"
    }


async def test_one_that_fails_hides_no_other(threads: ThreadPoolExecutor) -> None:
    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        bad = "bad" in request.target
        writer.write(response(b"", 500) if bad else response(body([series("1")])))

    async with serving(answer) as port:
        checks = QueryChecks(chosen(Access(f"http://{HOST}:{port}")), threads)
        found = await checks.ask("ns", None, {"a": "bad", "b": "up"})
    assert found["a"].value is None
    assert found["b"] == QueryAnswer(1.0)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (None, "allows no Prometheus; have its chart installed with the address in prometheus.addresses"),
        (Unusable("address x is not among those"), "address x is not among those"),
        (ApiServerError(500, "is ill"), "credentials of Prometheus: is ill"),
    ],
)
async def test_none_that_may_be_asked(
    choice: Choice | ApiServerError, said: str, threads: ThreadPoolExecutor
) -> None:
    found = await QueryChecks(chosen(choice), threads).ask("ns", None, {"a": "up", "b": "up"})
    assert set(found) == {"a", "b"}
    assert all(said in answer.unknown and answer.value is None for answer in found.values())


async def test_nothing_is_asked_for_nothing(threads: ThreadPoolExecutor) -> None:
    refusing = chosen(ApiServerError(500, "is ill"))
    assert await QueryChecks(refusing, threads).ask("ns", None, {}) == {}
