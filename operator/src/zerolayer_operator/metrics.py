"""The operator's own metrics, as `prometheus_client` objects in the default registry."""

from prometheus_client import Counter, Gauge, Histogram

RECONCILES = Counter(
    "zerolayer_operator_reconciles",
    "Reconciles of a pool by how they ended.",
    ["result"],
)
RECONCILE_SECONDS = Histogram(
    "zerolayer_operator_reconcile_seconds",
    "Seconds one reconcile of a pool took, waiting for the API server included.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
WAIT_SECONDS = Histogram(
    "zerolayer_operator_wait_seconds",
    "Seconds from the first event or round that asked for a reconcile until it began.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
)
LOOK_SECONDS = Histogram(
    "zerolayer_operator_look_seconds",
    "Seconds of thought for one look at a pool's load: how its autoscaler is to be set, and the account.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1),
)
RESYNC_LAST_TIMESTAMP = Gauge(
    "zerolayer_operator_resync_last_timestamp_seconds",
    "Unix time at which the last round over every pool ended.",
)
POOLS = Gauge(
    "zerolayer_operator_pools",
    "Pools by phase, as of their last reconcile.",
    ["phase"],
)
API_WRITES = Counter(
    "zerolayer_operator_api_writes",
    "Writes sent to the API server by kind of object and verb; none while nothing changes.",
    ["kind", "verb"],
)
DECISIONS = Counter(
    "zerolayer_operator_decisions",
    "Decisions that were told in an Event, by its reason.",
    ["reason"],
)
KNOWLEDGE_HITS = Histogram(
    "anthropic_ska_knowledge_hits",
    "Share of a golden set's expected answers that a revision gave, once for each run: blue serves, green is "
    "the canary.",
    ["namespace", "pool", "side"],
    buckets=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0),
)
LEADER = Gauge(
    "zerolayer_operator_leader",
    "1 while this replica holds the Lease, otherwise 0.",
)
LEASE_ATTEMPTS = Counter(
    "zerolayer_operator_lease_attempts",
    "Attempts to take or renew the Lease by how they ended.",
    ["result"],
)
