"""Names, units, help and documentation of every metric, and what generated answers add to them."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from zerolayer_worker.common.anchor import Anchor
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import EngineStats, OverloadedError, RepeatCounts
from zerolayer_worker.server import switches
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.metrics import Metrics
from zerolayer_worker.server.switches import IntentSwitches

HEAD = "| metric | type | labels | what |"
OWN = ("zero_layer_", "gen_ai_")
COMMON = {
    "gen_ai_operation_name": "chat",
    "gen_ai_provider_name": "zerolayer",
    "gen_ai_request_model": "fake-model",
}
BODY: dict[str, Any] = {
    "model": "fake-model",
    "max_tokens": 20,
    "messages": [{"role": "user", "content": "hi"}],
}

# What keeps its name although the conventions would have another one: dashboards and operators read it.
WITHOUT_UNIT = {"zero_layer_busy_share"}
COUNTED = re.compile(r"requests(_\w+)?|slots|tokens|pages(_\w+)?|faults|draining|info|token_usage")


@dataclass(frozen=True)
class Family:
    """A metric as it is exposed."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str

    def row(self) -> str:
        labels = ", ".join(f"`{label}`" for label in self.labels)
        return f"| `{self.name}` | {self.kind} | {labels} | {self.help} |"


class Told:
    """An engine with something to say in every series."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.info = replace(engine.info, anchor=Anchor("v1", "sha256:" + "0" * 64))

    def stats(self) -> EngineStats:
        return replace(self._engine.stats(), repeats=RepeatCounts(3, 1))


@pytest.fixture
def metrics(engine: Any) -> Metrics:
    lifecycle = Lifecycle(30)
    lifecycle.loaded(Told(engine), {})  # type: ignore[arg-type]
    return Metrics(lifecycle)


def families(metrics: Metrics) -> Iterator[Family]:
    """Ours, by name; the labels of what nobody has counted yet are known to its wrapper alone."""
    wrappers = {
        wrapper._name: wrapper._labelnames
        for wrapper in set(metrics.registry._names_to_collectors.values())
        if isinstance(wrapper, MetricWrapperBase)
    }
    for family in sorted(metrics.registry.collect(), key=lambda each: each.name):
        if not family.name.startswith(OWN):
            continue
        seen = {label for sample in family.samples for label in sample.labels} - {"le"}
        labels = wrappers.get(family.name, tuple(sorted(seen)))
        name = family.name + ("_total" if family.type == "counter" else "")
        yield Family(name, family.type, tuple(labels), family.documentation)


def test_every_metric_is_documented(metrics: Metrics, pytestconfig: pytest.Config) -> None:
    """The table in docs/monitoring.md is this one; replace it where they differ."""
    expected = "\n".join(family.row() for family in families(metrics))
    page = (pytestconfig.rootpath / "docs" / "monitoring.md").read_text(encoding="utf-8")
    _, _, rest = page.partition(HEAD + "\n| --- | --- | --- | --- |\n")
    assert rest.partition("\n\n")[0] == expected, f"the table has to be\n{expected}"


def test_names_follow_the_conventions(metrics: Metrics) -> None:
    """What `promtool check metrics` looks at, and that every measured quantity names its base unit."""
    for family in families(metrics):
        assert re.fullmatch(r"[A-Z1].{10,}\.", family.help), family
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", family.name), family
        assert family.name.endswith("_total") == (family.kind == "counter"), family
        words = family.name.split("_")
        assert not {"gauge", "counter", "histogram", "summary", "ms", "milliseconds", "kb", "percent"} & {
            *words
        }, family
        assert words[-1] not in ("count", "sum", "bucket"), family
        assert not any(label in ("le", "quantile") or label.startswith("__") for label in family.labels)
        stem = family.name.removesuffix("_total")
        measured = re.search(r"_(seconds|bytes|ratio)$", stem)
        assert measured or family.kind == "counter" or COUNTED.search(stem) or stem in WITHOUT_UNIT, family


def test_both_text_formats_can_be_parsed(metrics: Metrics) -> None:
    """Prometheus' own format and OpenMetrics, which is stricter, hold the same families."""
    plain = {
        f.name: f.type for f in text_string_to_metric_families(generate_latest(metrics.registry).decode())
    }
    strict = {f.name: f.type for f in parse_openmetrics(generate_openmetrics(metrics.registry).decode())}
    # The older format has the suffix in the family's name, and its parser takes it away.
    assert plain == strict
    assert len(plain) > 40


def test_engine_figures(metrics: Metrics) -> None:
    value = metrics.registry.get_sample_value
    assert value("zero_layer_kv_pages") == 64
    assert value("zero_layer_kv_pages_used") == 21
    assert value("zero_layer_kv_pages_cached") == 13
    assert value("zero_layer_preemptions_total") == 2
    assert value("zero_layer_prefix_cache_query_tokens_total") == 900
    assert value("zero_layer_prefix_cache_hit_tokens_total") == 320
    assert value("zero_layer_intent_consistency_ratio", {"intent": "deterministic"}) == 0.75


def test_no_ratio_before_the_first_comparison(engine: Any) -> None:
    lifecycle = Lifecycle(30)
    lifecycle.loaded(engine, {})
    value = Metrics(lifecycle).registry.get_sample_value
    assert value("zero_layer_intent_consistency_ratio", {"intent": "deterministic"}) is None


def bounds(live: Any, name: str) -> list[float]:
    registry = live.serving.metrics.registry
    return [
        float(sample.labels["le"])
        for family in registry.collect()
        for sample in family.samples
        if sample.name == f"{name}_bucket"
    ]


@pytest.mark.parametrize("stream", [False, True])
async def test_generated_answers_by_the_conventions(live: Any, stream: bool) -> None:
    assert (await live.http.post("/v1/chat/completions", json=BODY | {"stream": stream})).status_code == 200
    await live.until(lambda: live.lifecycle.in_flight == 0)
    for name in ("time_to_first_token", "time_per_output_token"):
        assert live.metric(f"gen_ai_server_{name}_seconds_count", **COMMON) == 1
    assert live.metric("gen_ai_server_request_duration_seconds_count", **COMMON, error_type="") == 1
    usage = "gen_ai_client_token_usage_sum"
    assert live.metric(usage, **COMMON, gen_ai_token_type="input") == 2
    assert live.metric(usage, **COMMON, gen_ai_token_type="output") == 3
    assert live.metric("zero_layer_queue_time_seconds_count") == 1
    assert live.metric("zero_layer_queue_time_seconds_sum") == 0.25


async def test_the_bounds_are_those_of_the_conventions(live: Any) -> None:
    assert (await live.http.post("/v1/messages", json=BODY)).status_code == 200
    await live.until(lambda: live.lifecycle.in_flight == 0)
    assert bounds(live, "gen_ai_server_time_to_first_token_seconds") == [
        *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
        float("inf"),
    ]
    assert bounds(live, "gen_ai_server_request_duration_seconds") == [
        *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
        float("inf"),
    ]
    assert bounds(live, "gen_ai_client_token_usage")[-3:] == [16777216, 67108864, float("inf")]


async def test_plain_completions_are_another_operation(live: Any) -> None:
    body = {"model": "fake-model", "prompt": "a b"}
    assert (await live.http.post("/v1/completions", json=body)).status_code == 200
    await live.until(lambda: live.lifecycle.in_flight == 0)
    labels = COMMON | {"gen_ai_operation_name": "text_completion", "error_type": ""}
    assert live.metric("gen_ai_server_request_duration_seconds_count", **labels) == 1


async def test_errors_have_a_type_and_no_other_figures(live: Any, engine: Any) -> None:
    engine.refusal = OverloadedError("full", retry_after=1)
    for stream in (False, True):
        assert (await live.http.post("/v1/messages", json=BODY | {"stream": stream})).status_code == 429
    await live.until(lambda: live.lifecycle.in_flight == 0)
    assert live.metric("gen_ai_server_request_duration_seconds_count", **COMMON, error_type="429") == 2
    assert live.metric("gen_ai_server_time_to_first_token_seconds_count", **COMMON) == 0


async def test_a_client_that_goes_has_a_type_of_its_own(live: Any, engine: Any) -> None:
    engine.gate.clear()
    async with live.http.stream("POST", "/v1/messages", json=BODY | {"stream": True}) as response:
        await anext(response.aiter_bytes())
    await live.until(lambda: live.lifecycle.in_flight == 0)
    labels = COMMON | {"error_type": "client_disconnected"}
    assert live.metric("gen_ai_server_request_duration_seconds_count", **labels) == 1


async def test_clients_can_make_no_series(live: Any) -> None:
    """Names that are not served, and paths that are no routes, are told together."""
    before = len(generate_latest(live.serving.metrics.registry).splitlines())
    for index in range(20):
        await live.http.post("/v1/messages", json=BODY | {"model": f"other-{index}"})
        await live.http.get(f"/no/such/{index}")
    await live.until(lambda: live.lifecycle.in_flight == 0)
    after = generate_latest(live.serving.metrics.registry).splitlines()
    assert len(after) <= before + 2
    assert b"other-" not in b"".join(after)


def turns(*texts: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {
        "messages": [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)],
    }


async def test_switches_of_intent(live: Any) -> None:
    async def ask(path: str, intent: str, *texts: str) -> None:
        headers = {"anthropic-sampling-intent": intent}
        assert (await live.http.post(path, json=BODY | turns(*texts), headers=headers)).status_code == 200

    switched = "zero_layer_intent_switches_total"
    await ask("/v1/messages", "deterministic", "one")
    await ask("/v1/messages", "creative", "one")  # another conversation that begins alike
    assert live.metric(switched) == 0
    await ask("/v1/messages", "creative", "one", "yes", "two")
    assert live.metric(switched) == 0
    await ask("/v1/chat/completions", "balanced", "one", "yes", "two")
    assert live.metric(switched) == 1
    await ask("/v1/messages", "creative", "else", "yes", "two")
    assert live.metric(switched) == 1


def test_what_is_remembered_of_conversations_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switches, "MAX_CONVERSATIONS", 2)
    seen = IntentSwitches()
    for opening in (1, 2, 3):
        assert not seen.switched(opening, Intent.CREATIVE, continued=True)
    assert not seen.switched(1, Intent.BALANCED, continued=True)
    assert seen.switched(3, Intent.BALANCED, continued=True)


async def test_metrics_are_read_while_requests_run(live: Any, engine: Any) -> None:
    """A scrape amid an answer sees it in flight."""
    engine.gate.clear()
    async with live.http.stream("POST", "/v1/messages", json=BODY | {"stream": True}):
        assert live.metric("zero_layer_http_requests_in_flight") == 1
        engine.gate.set()
    await asyncio.sleep(0)


def test_the_page_is_where_links_lead(pytestconfig: pytest.Config) -> None:
    page = Path(pytestconfig.rootpath / "docs" / "http-api.md").read_text(encoding="utf-8")
    assert "monitoring.md#what-a-worker-says" in page
