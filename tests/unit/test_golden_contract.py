"""The operator's Job and the worker's command understand each other."""

import argparse
import json

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, deployment, pool, spec
from zerolayer_operator.api.golden import LIMIT_BYTES, read_report
from zerolayer_operator.api.revision import FrozenInputs
from zerolayer_operator.api.update import GoldenConfigMap
from zerolayer_operator.build.golden import golden_job
from zerolayer_operator.decide.golden import PlannedGolden
from zerolayer_worker.commands import golden
from zerolayer_worker.golden.asking import Answer
from zerolayer_worker.golden.items import Expectation, GoldenSet, Item
from zerolayer_worker.golden.report import Asked, Findings
from zerolayer_worker.golden.similarity import Threshold


@pytest.mark.parametrize("key", [None, {"name": "keys"}, {"name": "keys", "key": "one"}])
def test_the_worker_takes_what_the_job_says(key: dict[str, str] | None) -> None:
    of = spec(**({"apiKeySecretRef": key} if key else {}))
    source = GoldenConfigMap(name="facts")
    planned = PlannedGolden("p", "run", source, "aaa", "bbb", FrozenInputs(image="w"), 600, missing=True)
    job = golden_job(pool(of, deployments=(deployment(of),)), of, planned, DEFAULTS)
    (container,) = job["spec"]["template"]["spec"]["containers"]

    parser = argparse.ArgumentParser()
    golden.add_parser(parser.add_subparsers())
    parsed = parser.parse_args(container["args"])

    assert str(parsed.set) == "/golden/golden.jsonl"
    assert (parsed.blue, parsed.green) == ("http://pool-aaa.default.svc", "http://pool-bbb.default.svc")
    assert str(parsed.model) == "/opt/zerolayer/models/tiny"
    assert (parsed.api_key_file is not None) == (key is not None)


@pytest.mark.parametrize("count", [2, 1000])
@pytest.mark.parametrize("answer", [Answer("yes"), Answer("no"), Answer(error="no answer within 60 s " * 5)])
def test_the_operator_reads_what_the_worker_reports(count: int, answer: Answer) -> None:
    expect = Expectation(contains=("yes",))
    items = [Item(id="e", prompt="q", expect=expect, change=True), Item(id="k", prompt="q", change=False)]
    items += [Item(id=str(index), prompt="q", expect=expect, change=False) for index in range(count - 2)]
    blue = Asked([Answer("yes")] * count, [Answer("yes")] * count)
    similar = {} if answer.error else dict.fromkeys(range(1, count), 0.5 if answer.text == "no" else 1.0)
    green = Asked([answer] * count, [answer] * count)
    asked = GoldenSet(tuple(items), f"sha256:{'a' * 64}")
    text = Findings(asked, blue, green, similar, Threshold(0.9, (0.95,))).json()

    found = read_report(text)

    assert len(text) <= LIMIT_BYTES
    assert (found.expected, found.similarity.kept) == (count - 1, count - 1)
    assert found.green.hits == (count - 1 if answer.text == "yes" else 0)
    assert bool(found.incomplete) == bool(answer.error)
    assert bool(found.failing) == (answer.text != "yes")
    assert json.loads(text)["failingCount"] == (0 if answer.text == "yes" else count)
