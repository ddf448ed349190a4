"""The chart's rules, checked and run by the real promtool: what they record, and when each alert fires."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from zerolayer_dev.paths import repo_root

Object = dict[str, Any]
Series = dict[str, str]
MINUTES = 120
WORKER = 'namespace="models",pod="chat-a",zerolayer_dev_pool="chat",zerolayer_dev_revision="r"'
OPERATOR = 'namespace="zs",pod="operator"'
POOL = 'namespace="models",pod="operator",pool="chat"'


class Checked(NamedTuple):
    """The chart's rules, as `rules.yaml` in a folder, and promtool to check them with."""

    promtool: Callable[..., str]
    folder: Path

    def run(self, *arguments: str) -> str:
        return self.promtool(self.folder, *arguments)

    def expect(self, series: Series, samples: dict[str, list[Object]]) -> None:
        """Has some series run for two hours, and then expects samples of queries."""
        test = {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {"expr": query, "eval_time": f"{MINUTES}m", "exp_samples": expected}
                for query, expected in samples.items()
            ],
        }
        text = yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]})
        (self.folder / "test.yaml").write_text(text, encoding="utf-8")
        self.run("test", "rules", "test.yaml")


def spec(render: Callable[..., list[Object]], **values: Any) -> Object:
    objects = render({"metrics": {"prometheusRule": {"enabled": True}}, **values})
    (rule,) = [item for item in objects if item["kind"] == "PrometheusRule"]
    return rule["spec"]


@pytest.fixture
def checked(render: Callable[..., list[Object]], promtool: Callable[..., str], tmp_path: Path) -> Checked:
    """The rules of the default values."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec(render)), encoding="utf-8")
    return Checked(promtool, tmp_path)


@pytest.fixture
def rules(render: Callable[..., list[Object]]) -> list[Object]:
    return [rule for group in spec(render)["groups"] for rule in group["rules"]]


@pytest.mark.parametrize(("interval", "overdue"), [(1, 600), (200, 600), (250.5, 752), (3600, 10800)])
def test_rules_are_valid_whatever_the_interval_of_resyncs(
    render: Callable[..., list[Object]], checked: Checked, interval: float, overdue: int
) -> None:
    text = yaml.safe_dump(spec(render, resyncInterval=interval))
    assert f"[{overdue}s]" in text
    assert f"> {overdue}\n" in text
    assert "RESYNC_OVERDUE" not in text
    (checked.folder / "others.yaml").write_text(text, encoding="utf-8")
    assert "SUCCESS" in checked.run("check", "rules", "--lint=all", "--lint-fatal", "others.yaml")


def test_names_of_recorded_series_say_their_level_and_operation(rules: list[Object]) -> None:
    recorded = [rule["record"] for rule in rules if "record" in rule]
    assert recorded
    for name in recorded:
        assert re.fullmatch(
            r"namespace_pool(_\w+)?:zero_?layer_\w+:(count|sum|max|(\w+_)?rate5m|(\w+_)?(increase|delta)1[hd])",
            name,
        ), name


def test_every_alert_says_how_bad_it_is_what_is_wrong_and_what_to_do(rules: list[Object]) -> None:
    alerts = [rule for rule in rules if "alert" in rule]
    assert len({rule["alert"] for rule in alerts}) == len(alerts)
    for rule in alerts:
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, rule
        assert set(rule["annotations"]) == {"summary", "description"}, rule
        assert rule["for"], rule


def test_only_series_that_there_are_stand_in_rules_and_dashboard() -> None:
    files = [repo_root() / "charts/zerolayer/files" / name for name in ("rules.yaml", "dashboard.json")]
    own = [
        *(repo_root() / "worker/src/zerolayer_worker/server").glob("*metrics.py"),
        *(
            repo_root() / "operator/src/zerolayer_operator" / name
            for name in ("metrics.py", "pool_metrics.py")
        ),
    ]
    told = "\n".join(path.read_text(encoding="utf-8") for path in own)
    for path in files:
        asked = set(re.findall(r"\b(?<!:)(zero_?layer_[a-z_]+)\b(?!:)", path.read_text(encoding="utf-8")))
        assert len(asked) > 20
        for name in asked - {"zerolayer_dev_pool"}:
            base = re.sub("_(total|bucket)$", "", name).removeprefix("zerolayer_operator_pool_")
            assert f'"{base}"' in told, f"{name} in {path.name}"


STEADY: Series = {
    f"zero_layer_slots{{{WORKER}}}": f"8x{MINUTES}",
    f"zero_layer_busy_slot_seconds_total{{{WORKER}}}": f"0+120x{MINUTES}",
    f"zero_layer_waiting_request_seconds_total{{{WORKER}}}": f"0+30x{MINUTES}",
    f"zero_layer_requests_received_total{{{WORKER}}}": f"0+60x{MINUTES}",
    f"zero_layer_output_tokens_total{{{WORKER}}}": f"0+600x{MINUTES}",
    f"zero_layer_busy_share_seconds_total{{{WORKER}}}": f"0+15x{MINUTES}",
    f'zero_layer_responses_total{{{WORKER},code="200"}}': f"0+60x{MINUTES}",
    f'zero_layer_responses_total{{{WORKER},code="500"}}': f"0x{MINUTES}",
    f'zero_layer_time_to_first_token_seconds_bucket{{{WORKER},le="0.1"}}': f"0x{MINUTES}",
    f'zero_layer_time_to_first_token_seconds_bucket{{{WORKER},le="0.5"}}': f"0+60x{MINUTES}",
    f'zero_layer_time_to_first_token_seconds_bucket{{{WORKER},le="+Inf"}}': f"0+60x{MINUTES}",
    f"zero_layer_last_step_age_seconds{{{WORKER}}}": f"0x{MINUTES}",
    f"zero_layer_api_key_faults{{{WORKER}}}": f"0x{MINUTES}",
    f"zerolayer_operator_leader{{{OPERATOR}}}": f"1x{MINUTES}",
    f'zerolayer_operator_lease_attempts_total{{{OPERATOR},result="held"}}': f"0+12x{MINUTES}",
    f'zerolayer_operator_lease_attempts_total{{{OPERATOR},result="error"}}': f"0x{MINUTES}",
    f"zerolayer_operator_resync_last_timestamp_seconds{{{OPERATOR}}}": f"0+60x{MINUTES}",
    f'zerolayer_operator_reconciles_total{{{OPERATOR},result="ok"}}': f"0+10x{MINUTES}",
    f'zerolayer_operator_reconciles_total{{{OPERATOR},result="error"}}': f"0x{MINUTES}",
    f'zerolayer_operator_pools{{{OPERATOR},phase="Ready"}}': f"1x{MINUTES}",
    f'zerolayer_operator_pools{{{OPERATOR},phase="Degraded"}}': f"0x{MINUTES}",
    f"zerolayer_operator_pool_load_known{{{POOL}}}": f"1x{MINUTES}",
    f"zerolayer_operator_pool_utilization{{{POOL}}}": f"0.25x{MINUTES}",
    f"zerolayer_operator_pool_scale_down_window_seconds{{{POOL}}}": f"120x{MINUTES}",
    f"zerolayer_operator_pool_hold_replicas{{{POOL}}}": f"0x{MINUTES}",
    f'zerolayer_operator_pool_replicas{{{POOL},state="wanted"}}': f"1x{MINUTES}",
    f'zerolayer_operator_pool_replicas{{{POOL},state="ready"}}': f"1x{MINUTES}",
    f"zerolayer_operator_pool_regrets_total{{{POOL}}}": f"7x{MINUTES}",
    f"zerolayer_operator_pool_replica_seconds_total{{{POOL}}}": f"4500+60x{MINUTES}",
    f"zerolayer_operator_pool_replica_seconds_saved{{{POOL}}}": f"300+20x{MINUTES}",
}
"""Two hours of one pool with one worker, and nothing wrong."""


def changed(name: str, labels: str, values: str) -> Series:
    series = f"{name}{{{labels}}}"
    assert series in STEADY
    return {series: values}


def replicas(state: str, count: int) -> Series:
    return changed("zerolayer_operator_pool_replicas", f'{POOL},state="{state}"', f"{count}x{MINUTES}")


def reconciles(result: str, values: str) -> Series:
    return changed("zerolayer_operator_reconciles_total", f'{OPERATOR},result="{result}"', values)


UNKNOWN = changed("zerolayer_operator_pool_load_known", POOL, f"0x{MINUTES}")
FAULTS: list[tuple[set[str], Series]] = [
    (set(), {}),
    (set(), replicas("wanted", 0) | replicas("ready", 0) | UNKNOWN),
    (
        {"ZeroLayerPoolDegraded"},
        changed("zerolayer_operator_pools", f'{OPERATOR},phase="Degraded"', f"2x{MINUTES}"),
    ),
    ({"ZeroLayerPoolWithoutWorkers", "ZeroLayerPoolReplicasMissing"}, replicas("ready", 0)),
    ({"ZeroLayerPoolReplicasMissing"}, replicas("wanted", 3)),
    (
        {"ZeroLayerPoolRequestsWait"},
        changed("zero_layer_waiting_request_seconds_total", WORKER, f"0+240x{MINUTES}"),
    ),
    (
        {"ZeroLayerPoolResponsesFail"},
        changed("zero_layer_responses_total", f'{WORKER},code="500"', f"0+10x{MINUTES}"),
    ),
    ({"ZeroLayerPoolLoadUnknown"}, UNKNOWN),
    (
        {"ZeroLayerPoolRegretsOften"},
        changed("zerolayer_operator_pool_regrets_total", POOL, f"7+0.2x{MINUTES}"),
    ),
    ({"ZeroLayerWorkerStuck"}, changed("zero_layer_last_step_age_seconds", WORKER, f"90x{MINUTES}")),
    ({"ZeroLayerWorkerKeyFaults"}, changed("zero_layer_api_key_faults", WORKER, f"1x{MINUTES}")),
    ({"ZeroLayerOperatorHasNoLeader"}, changed("zerolayer_operator_leader", OPERATOR, f"0x{MINUTES}")),
    ({"ZeroLayerOperatorHasNoLeader"}, changed("zerolayer_operator_leader", OPERATOR, f"1x60 _x{MINUTES}")),
    (
        {"ZeroLayerOperatorLeaseUnsteady"},
        changed("zerolayer_operator_lease_attempts_total", f'{OPERATOR},result="error"', f"0+1x{MINUTES}"),
    ),
    (
        {"ZeroLayerOperatorResyncStale"},
        changed("zerolayer_operator_resync_last_timestamp_seconds", OPERATOR, f"6000x{MINUTES}"),
    ),
    ({"ZeroLayerOperatorNotReconciling"}, reconciles("ok", f"50x{MINUTES}")),
    ({"ZeroLayerOperatorReconcilesFail"}, reconciles("error", f"0+5x{MINUTES}")),
]


@pytest.mark.parametrize(("alerts", "fault"), FAULTS)
def test_alerts_that_fire(checked: Checked, alerts: set[str], fault: Series) -> None:
    firing = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(alerts)]
    checked.expect(STEADY | fault, {'count by (alertname) (ALERTS{alertstate="firing"})': firing})


def test_every_alert_is_among_these(rules: list[Object]) -> None:
    assert {rule["alert"] for rule in rules if "alert" in rule} == set().union(
        *(names for names, _ in FAULTS)
    )


# What grew over a day is extrapolated by half a step before the first sample.
RECORDED = {
    "namespace_pool:zero_layer_workers:count": 1,
    "namespace_pool:zero_layer_slots:sum": 8,
    "namespace_pool:zero_layer_busy_slot_seconds:rate5m": 2,
    "namespace_pool:zero_layer_waiting_request_seconds:rate5m": 0.5,
    "namespace_pool:zero_layer_requests_received:rate5m": 1,
    "namespace_pool:zero_layer_output_tokens:rate5m": 10,
    "namespace_pool:zero_layer_busy_share_seconds:avg_rate5m": 0.25,
    "namespace_pool:zero_layer_waiting_requests_per_slots:ratio_rate5m": 0.0625,
    "namespace_pool:zero_layer_failed_responses_per_responses:ratio_rate5m": 0,
    "namespace_pool:zerolayer_operator_pool_utilization:max": 0.25,
    "namespace_pool:zerolayer_operator_pool_scale_down_window_seconds:max": 120,
    "namespace_pool:zerolayer_operator_pool_hold_replicas:max": 0,
    "namespace_pool:zerolayer_operator_pool_regrets:increase1h": 0,
    "namespace_pool:zerolayer_operator_pool_replica_seconds:increase1d": 60 * (MINUTES + 0.5),
    "namespace_pool:zerolayer_operator_pool_replica_seconds_saved:delta1d": 20 * (MINUTES + 0.5),
    "namespace_pool:zerolayer_operator_pool_replica_seconds_saved:ratio_delta1d": 0.25,
}
SPLIT = {
    'namespace_pool_state:zerolayer_operator_pool_replicas:max{state="ready"}': 1,
    'namespace_pool:zero_layer_time_to_first_token_seconds:histogram_quantile_rate5m{quantile="0.5"}': 0.3,
    'namespace_pool:zero_layer_time_to_first_token_seconds:histogram_quantile_rate5m{quantile="0.9"}': 0.46,
    'namespace_pool:zero_layer_time_to_first_token_seconds:histogram_quantile_rate5m{quantile="0.99"}': 0.496,
    'namespace_pool_le:zero_layer_time_to_first_token_seconds_bucket:rate5m{le="0.5"}': 1,
}


def test_what_is_recorded(checked: Checked, rules: list[Object]) -> None:
    recorded = {rule["record"] for rule in rules if "record" in rule}
    assert recorded == set(RECORDED) | {name.partition("{")[0] for name in SPLIT}
    labels = '{namespace="models",pool="chat"}'
    expected = {
        f"round({name}, 0.0001)": [{"labels": labels, "value": round(value, 4)}]
        for name, value in RECORDED.items()
    }
    expected |= {
        f"round(max by (namespace, pool) ({name}), 0.0001)": [{"labels": labels, "value": value}]
        for name, value in SPLIT.items()
    }
    checked.expect(STEADY, expected)


def test_answers_that_fail_are_a_share_before_the_first_one_did(checked: Checked) -> None:
    """A code is no series before an answer has it."""
    unfailing = {name: values for name, values in STEADY.items() if 'code="500"' not in name}
    name = "namespace_pool:zero_layer_failed_responses_per_responses:ratio_rate5m"
    checked.expect(unfailing, {name: [{"labels": f'{name}{{namespace="models",pool="chat"}}', "value": 0}]})
