"""Users' own checks, asked of a real Prometheus."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from zerolayer_dev.testing.prometheus import Prometheus
from zerolayer_operator.api.prometheus import PrometheusSpec
from zerolayer_operator.api.update import QueryCheck
from zerolayer_operator.decide.query_checks import Variables, asked, compared
from zerolayer_operator.observe.load_sources import Choice
from zerolayer_operator.observe.prometheus import Access
from zerolayer_operator.observe.query_checks import QueryChecks

NAMES = Variables(blue="aaaa0000bb", green="cccc1111dd", pool="pool", namespace="ns")
GREEN = 'label_replace(vector(0.5), "revision", "cccc1111dd", "", "")'


@pytest.fixture(scope="module")
def address(prometheus: Prometheus) -> str:
    prometheus.start({}, "1s")
    return prometheus.url


@pytest.mark.parametrize(
    ("query", "satisfied", "said"),
    [
        ("vector(0.5)", True, "0.5, wanted is at most 0.5"),
        ("0.5", True, "0.5, wanted"),
        ("0.75", False, "0.75, wanted is at most 0.5"),
        (f'({GREEN}) and on (revision) label_replace(vector(0), "revision", "$green", "", "")', True, "0.5"),
        (f'({GREEN}) and on (revision) label_replace(vector(0), "revision", "$blue", "", "")', None, "no se"),
        ("vector(0) / 0", None, "not a number"),
        ("vector(1) / 0", False, "inf, wanted"),
        (f"{GREEN} or vector(1)", None, "has 2 series"),
        ("sum(", None, "answers 400 (invalid parameter"),
        ("prometheus_build_info[5m]", None, ""),
    ],
)
async def test_a_value_is_compared(address: str, query: str, satisfied: bool | None, said: str) -> None:
    async def choose(_namespace: str, _named: PrometheusSpec | None) -> Choice:
        return Access(address)

    wire = {"name": "mine", "query": query, "threshold": "0.5"}
    checks = [QueryCheck.model_validate_json(json.dumps(wire))]
    with ThreadPoolExecutor(1) as threads:
        answers = await QueryChecks(choose, threads).ask("ns", None, asked(checks, NAMES))
    (result,) = compared(checks, answers)
    assert (result.satisfied, said in result.detail) == (satisfied, True), result.detail
