"""What the dashboard shows: rows of panels, each with its queries.

Only series that workers and the operator expose are asked for, no recorded ones, so that the dashboard works
without the chart's rules. A pool is `pool` in the operator's series and `zerolayer_dev_pool` in the workers'.
"""

from dataclasses import dataclass
from typing import Final

_WORKERS: Final = 'namespace=~"$namespace",zerolayer_dev_pool=~"$pool"'
_POOLS: Final = 'namespace=~"$namespace",pool=~"$pool"'
_BY_POOL: Final = "namespace, zerolayer_dev_pool"
_WORKERS_POOL: Final = "{{namespace}}/{{zerolayer_dev_pool}}"
_POOL: Final = "{{namespace}}/{{pool}}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture, or one number where `stat` is set.

    Attributes:
        unit: Grafana's word for the values' unit.
        queries: PromQL by the legend of its series.
        span: Width, of 24 columns.
        low: Smallest value of the axis, where there is one.
        top: Largest value of the axis, where there is one.
        bars: Values from which the colour is the warning's and the alarm's.
    """

    title: str
    description: str
    unit: str
    queries: dict[str, str]
    span: int = 12
    stat: bool = False
    low: float | None = 0
    top: float | None = None
    bars: tuple[float, float] | None = None


def _rate(counter: str, by: str, labels: str = _WORKERS) -> str:
    return f"sum by ({by}) (rate({counter}{{{labels}}}[$__rate_interval]))"


def _said(figure: str) -> str:
    """What the operator says of pools, whichever of its pods does."""
    return f"max by (namespace, pool) (zerolayer_operator_pool_{figure}{{{_POOLS}}})"


def _growth(total: str, how: str, span: str) -> str:
    """How a total of pools grows; after a change of the leader, what both of them said together."""
    return f"sum by (namespace, pool) ({how}(zerolayer_operator_pool_{total}_total{{{_POOLS}}}[{span}]))"


def _state(state: str) -> str:
    return f'max by (namespace, pool) (zerolayer_operator_pool_replicas{{{_POOLS},state="{state}"}})'


def _quantile(share: float, histogram: str, by: str, labels: str = _WORKERS) -> str:
    return f"histogram_quantile({share}, {_rate(f'{histogram}_bucket', f'{by}, le', labels)})"


def _stat(
    title: str,
    description: str,
    unit: str,
    query: str,
    *,
    legend: str = "",
    bars: tuple[float, float] | None = None,
    low: float | None = 0,
) -> Panel:
    return Panel(title, description, unit, {legend: query}, span=4, stat=True, low=low, bars=bars)


_FLEET: Final = (
    _stat(
        "Pools",
        "By phase, over all namespaces.",
        "short",
        "sum by (phase) (zerolayer_operator_pools) > 0",
        legend="{{phase}}",
    ),
    _stat("Workers", "Those that Prometheus hears of.", "short", f"count(zero_layer_slots{{{_WORKERS}}})"),
    _stat(
        "Capacity in use",
        "Mean over all workers of the share of their batch capacity that is in use.",
        "percentunit",
        f"avg(rate(zero_layer_busy_share_seconds_total{{{_WORKERS}}}[$__rate_interval]))",
        bars=(0.8, 0.95),
    ),
    _stat(
        "Waiting requests",
        "Requests in all queues, on average.",
        "short",
        f"sum(rate(zero_layer_waiting_request_seconds_total{{{_WORKERS}}}[$__rate_interval]))",
        bars=(1, 10),
    ),
    _stat(
        "Load unknown",
        "Autoscaled pools whose load is not known, so that their window is at its maximum.",
        "short",
        f"count({_said('load_known')} == 0) or vector(0)",
        bars=(1, 5),
    ),
    _stat(
        "Saved",
        "Replica-time that a fixed window of 300 s would have cost more; negative if less.",
        "s",
        f"sum({_said('replica_seconds_saved')})",
        low=None,
    ),
    Panel(
        "Requests",
        "Requests that came in, by pool.",
        "reqps",
        {_WORKERS_POOL: _rate("zero_layer_requests_received_total", _BY_POOL)},
    ),
    Panel(
        "Tokens",
        "Tokens that were generated, by pool.",
        "short",
        {_WORKERS_POOL: _rate("zero_layer_output_tokens_total", _BY_POOL)},
    ),
)

_SCALING: Final = (
    Panel(
        "Workers",
        "Wanted and ready ones of the serving revision, and the fewest that the autoscaler may leave.",
        "short",
        {
            f"{_POOL} wanted": _state("wanted"),
            f"{_POOL} ready": _state("ready"),
            f"{_POOL} floor": _said("floor_replicas"),
            f"{_POOL} hold": _said("hold_replicas"),
        },
    ),
    Panel(
        "Load",
        "Slots that would be busy if no request waited, and those that there are.",
        "short",
        {f"{_POOL} offered": _said("offered_slots"), f"{_POOL} slots": _said("slots")},
    ),
    Panel(
        "Utilisation",
        "Share of the ready workers' capacity in use.",
        "percentunit",
        {_POOL: _said("utilization")},
        top=1,
    ),
    Panel(
        "Scale-down window",
        "How long the load has to be lower before the pool shrinks; at its maximum while it is not known.",
        "s",
        {_POOL: _said("scale_down_window_seconds")},
    ),
    Panel(
        "Flatness",
        "How flat the load has been: 1 is flat.",
        "percentunit",
        {_POOL: _said("flatness")},
        8,
        top=1,
    ),
    Panel(
        "Load known",
        "1 while the pool's load is known. Where it is not, the pool's condition ScalingTuned says why.",
        "short",
        {_POOL: _said("load_known")},
        8,
        top=1,
    ),
    Panel(
        "Regrets",
        "Times a pool grew within one cold start after it had shrunk, in the last hour.",
        "short",
        {_POOL: _growth("regrets", "increase", "1h")},
        8,
    ),
    Panel(
        "Latency penalty",
        "What replica-time is weighted with where requests wait too long for their first token; only of "
        "pools with autoscaling.cost.latencyPenalty.",
        "none",
        {_POOL: _said("latency_penalty")},
        24,
        low=1,
    ),
    Panel(
        "Replica-time saved",
        "Against a fixed window of 300 s, since the operator began to look.",
        "s",
        {_POOL: _said("replica_seconds_saved")},
        low=None,
    ),
    Panel(
        "Replica-time spent",
        "Replica-seconds per second: the mean number of workers.",
        "short",
        {_POOL: _growth("replica_seconds", "rate", "$__rate_interval")},
    ),
)

_SERVICE: Final = (
    Panel(
        "Time to first token",
        "From a request's headers to its first token.",
        "s",
        {
            f"{_WORKERS_POOL} p{percent}": _quantile(
                percent / 100, "zero_layer_time_to_first_token_seconds", _BY_POOL
            )
            for percent in (50, 90, 99)
        },
    ),
    Panel(
        "Time to the end of an answer",
        "From a request's headers to the end of its answer.",
        "s",
        {
            f"{_WORKERS_POOL} p{percent}": _quantile(
                percent / 100, "zero_layer_request_duration_seconds", _BY_POOL
            )
            for percent in (50, 90, 99)
        },
    ),
    Panel(
        "Requests in the engine",
        "Those that hold a slot and those that wait for one, on average.",
        "short",
        {
            f"{_WORKERS_POOL} running": _rate("zero_layer_busy_slot_seconds_total", _BY_POOL),
            f"{_WORKERS_POOL} waiting": _rate("zero_layer_waiting_request_seconds_total", _BY_POOL),
        },
    ),
    Panel(
        "Answers",
        "By HTTP status; 499 is a client that was gone.",
        "reqps",
        {f"{_WORKERS_POOL} {{{{code}}}}": _rate("zero_layer_responses_total", f"{_BY_POOL}, code")},
    ),
    Panel(
        "Refused requests",
        "Refused or failed for a reason other than their content; none is shown before the first.",
        "reqps",
        {
            f"{_WORKERS_POOL} {{{{reason}}}}": _rate(
                "zero_layer_rejected_requests_total", f"{_BY_POOL}, reason"
            )
        },
    ),
    Panel(
        "Tokens",
        "Tokens of prompts and of answers, per second.",
        "short",
        {
            f"{_WORKERS_POOL} prompts": _rate("zero_layer_prompt_tokens_total", _BY_POOL),
            f"{_WORKERS_POOL} answers": _rate("zero_layer_output_tokens_total", _BY_POOL),
        },
    ),
)

_EACH_WORKER: Final = (
    Panel(
        "Capacity in use",
        "Share of each worker's batch capacity.",
        "percentunit",
        {"{{pod}}": _rate("zero_layer_busy_share_seconds_total", "pod")},
        8,
        top=1,
    ),
    Panel(
        "KV cache",
        "Share of each worker's pages that requests hold, and that keep prompts' beginnings for later ones.",
        "percentunit",
        {
            f"{{{{pod}}}} {what}": f"max by (pod) (zero_layer_kv_pages_{what}{{{_WORKERS}}}"
            f" / zero_layer_kv_pages{{{_WORKERS}}})"
            for what in ("used", "cached")
        },
        8,
        top=1,
    ),
    Panel(
        "Since the engine last turned",
        "While a worker has work; it is restarted after two minutes.",
        "s",
        {"{{pod}}": f"max by (pod) (zero_layer_last_step_age_seconds{{{_WORKERS}}})"},
        8,
    ),
    Panel(
        "Memory",
        "Resident memory of the workers' processes.",
        "bytes",
        {"{{pod}}": f"max by (pod) (process_resident_memory_bytes{{{_WORKERS}}})"},
        8,
    ),
    Panel(
        "Start",
        "How long each stage of a worker's start took, the longest of all workers.",
        "s",
        {"{{stage}}": f"max by (stage) (zero_layer_warmup_stage_seconds{{{_WORKERS}}})"},
        8,
    ),
    Panel(
        "Draining workers",
        "Workers that were told to go and still answer.",
        "short",
        {_WORKERS_POOL: f"sum by ({_BY_POOL}) (zero_layer_draining{{{_WORKERS}}})"},
        8,
    ),
    Panel(
        "Faulty API keys",
        "Keys that can't be read, so that an older one may be valid, or are none.",
        "short",
        {_WORKERS_POOL: f"max by ({_BY_POOL}) (zero_layer_api_key_faults{{{_WORKERS}}})"},
        8,
    ),
)

_OPERATOR: Final = (
    _stat("Leaders", "Replicas that hold the Lease: 1.", "short", "sum(zerolayer_operator_leader)"),
    _stat(
        "Since the last resync",
        "How long ago the last round over every pool ended.",
        "s",
        "time() - max(zerolayer_operator_resync_last_timestamp_seconds)",
        bars=(300, 600),
    ),
    _stat(
        "Memory",
        "Resident memory of the operator, of the replica that has most.",
        "bytes",
        "max(process_resident_memory_bytes and on (instance) zerolayer_operator_leader)",
    ),
    Panel(
        "Reconciles",
        "By result: `error` is the API server's, `bug` the operator's own.",
        "ops",
        {"{{result}}": "sum by (result) (rate(zerolayer_operator_reconciles_total[$__rate_interval]))"},
    ),
    Panel(
        "Time of a reconcile",
        "Waiting for the API server included.",
        "s",
        {
            f"p{percent}": f"histogram_quantile({percent / 100}, "
            "sum by (le) (rate(zerolayer_operator_reconcile_seconds_bucket[$__rate_interval])))"
            for percent in (50, 99)
        },
    ),
    Panel(
        "Writes to the API server",
        "None while nothing changes.",
        "ops",
        {
            "{{verb}} {{kind}}": "sum by (kind, verb) "
            "(rate(zerolayer_operator_api_writes_total[$__rate_interval]))"
        },
        8,
    ),
    Panel(
        "Decisions",
        "Those that were told in an Event, in the last hour.",
        "short",
        {"{{reason}}": "sum by (reason) (increase(zerolayer_operator_decisions_total[1h]))"},
        8,
    ),
    Panel(
        "Looks at the Lease",
        "By result; a leader renews it, a standby is refused.",
        "ops",
        {"{{result}}": "sum by (result) (rate(zerolayer_operator_lease_attempts_total[$__rate_interval]))"},
        8,
    ),
)

ROWS: Final = {
    "Fleet": _FLEET,
    "How pools follow their load": _SCALING,
    "What clients see": _SERVICE,
    "Workers": _EACH_WORKER,
    "Operator": _OPERATOR,
}
