"""Reading what a worker says of its load."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.observe.load import Requests
from zerolayer_operator.observe.worker_metrics import WorkerCounters, WorkerMetricsError, read_counters

TEXT = """\
# HELP zero_layer_requests_received_total Requests put into the engine's queue.
# TYPE zero_layer_requests_received_total counter
zero_layer_requests_received_total 40.0
zero_layer_busy_slot_seconds_total 31.5
zero_layer_waiting_request_seconds_total 2.25
zero_layer_requests_served_total 38.0
zero_layer_served_slot_seconds_total 30.0
zero_layer_busy_share_seconds_total 12.75
# TYPE zero_layer_slots gauge
zero_layer_slots 8.0
zero_layer_draining 0.0
zero_layer_responses_total{code="200",route="/v1/messages"} 38.0
"""
COUNTERS = WorkerCounters(
    arrivals=40, busy_s=31.5, queued_s=2.25, finished=38, service_s=30, share_s=12.75, slots=8
)


def test_reads_what_a_worker_has_counted() -> None:
    assert read_counters(TEXT) == COUNTERS


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "zero_layer_slots 8.0\n",
            "",
            "does not give zero_layer_slots; its image is older than the operator",
        ),
        ("zero_layer_slots 8.0", "zero_layer_slots NaN", "nan for zero_layer_slots"),
        ("zero_layer_slots 8.0", "zero_layer_slots +Inf", "inf for zero_layer_slots"),
        ("zero_layer_slots 8.0", "zero_layer_slots -1", "-1 for zero_layer_slots"),
        ("zero_layer_slots 8.0", "zero_layer_slots 1e300", r"1e\+300 for zero_layer_slots"),
        ("zero_layer_slots 8.0", "zero_layer_slots 0", "0 for zero_layer_slots"),
        ("zero_layer_slots 8.0", "zero_layer_slots 5e-324", "e-324 for zero_layer_slots"),
        ("zero_layer_slots 8.0", "zero_layer_slots eight", "can't be read"),
        ("zero_layer_slots 8.0", "zero_layer_slots", "can't be read"),
        ("zero_layer_slots 8.0", "zero_layer_slots 8\nzero_layer_slots 8", "zero_layer_slots twice"),
        ("zero_layer_slots 8.0", 'zero_layer_slots{pod="a"} 8\nzero_layer_slots 8', "zero_layer_slots twice"),
    ],
)
def test_what_makes_no_sense_is_told(old: str, new: str, said: str) -> None:
    with pytest.raises(WorkerMetricsError, match=said):
        read_counters(TEXT.replace(old, new))


def test_requests_of_the_moment_are_read_where_a_worker_tells_them_both() -> None:
    running, waiting = "zero_layer_requests_running 3.0\n", "zero_layer_requests_waiting 2.0\n"
    assert read_counters(TEXT + running + waiting).requests == Requests(3, 2)
    assert read_counters(TEXT + running).requests is None
    assert Requests(2, 9) < Requests(3, 0) < Requests(3, 1)


NAME = "zero_layer_time_to_first_token_seconds_bucket"
BUCKETS = """\
# TYPE zero_layer_time_to_first_token_seconds histogram
zero_layer_time_to_first_token_seconds_bucket{le="0.5",route="messages"} 3.0
zero_layer_time_to_first_token_seconds_bucket{le="+Inf",route="messages"} 4.0
zero_layer_time_to_first_token_seconds_bucket{le="0.5",route="chat"} 1.0
zero_layer_time_to_first_token_seconds_bucket{le="+Inf",route="chat"} 1.0
zero_layer_time_to_first_token_seconds_count{route="chat"} 1.0
"""


def test_first_tokens_are_read_of_all_routes_where_they_are_asked_for() -> None:
    assert read_counters(TEXT + BUCKETS).first_tokens is None
    assert read_counters(TEXT + BUCKETS, first_tokens=True) == replace(
        COUNTERS, first_tokens={0.5: 4, float("inf"): 5}
    )
    assert read_counters(TEXT, first_tokens=True).first_tokens == {}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('le="0.5",route="chat"', 'route="chat"', "can't be read"),
        ('le="0.5",route="chat"', 'le="half",route="chat"', "can't be read"),
        ('le="0.5",route="chat"', 'le="NaN",route="chat"', "can't be read"),
        ('le="0.5",route="chat"', 'le="-1",route="chat"', "can't be read"),
        ("3.0", "3.0" + " " * 1000, "can't be read"),
        ("# TYPE", 999 * f'{NAME}{{le="1"}} 1\n' + "# TYPE", "can't be read"),
        ("3.0", "NaN", "nan for zero_layer_time_to_first_token_seconds_bucket"),
        ("3.0", "-3", "-3 for zero_layer_time_to_first_token_seconds_bucket"),
    ],
)
def test_first_tokens_that_make_no_sense_are_told(old: str, new: str, said: str) -> None:
    with pytest.raises(WorkerMetricsError, match=said):
        read_counters(TEXT + BUCKETS.replace(old, new), first_tokens=True)


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        ({1: 5, 2: 7}, {1: 3, 2: 3}, {1: 2, 2: 4}),
        ({1: 5, 2: 7}, {}, {1: 5, 2: 7}),
        ({}, {}, {}),
        ({1: 5}, None, None),
        (None, {1: 5}, None),
    ],
)
def test_growth_of_first_tokens(now, before, expected) -> None:
    earlier, later = replace(COUNTERS, first_tokens=before), replace(COUNTERS, first_tokens=now)
    assert later.since(earlier).first_tokens == expected


@pytest.mark.parametrize("now", [{}, {1: 2, 2: 9}])
def test_fewer_first_tokens_are_those_of_a_worker_that_began_anew(now: dict[float, float]) -> None:
    later = replace(COUNTERS, first_tokens=now)
    assert later.since(replace(COUNTERS, first_tokens={1: 3, 2: 3})) == later


LINES = st.lists(
    st.one_of(
        st.text(max_size=60),
        st.sampled_from((TEXT + BUCKETS).splitlines()),
        st.builds(
            "{}{}{}".format,
            st.sampled_from(
                [
                    "zero_layer_slots",
                    "zero_layer_busy_slot_seconds_total{",
                    "zero_layer_time_to_first_token_seconds_bucket{le=",
                ]
            ),
            st.sampled_from([" ", "{", '{a="', "} ", ""]),
            st.text(max_size=20),
        ),
    ),
    max_size=15,
)


@given(LINES)
def test_any_text_is_read_or_refused(lines: list[str]) -> None:
    try:
        counters = read_counters("\n".join(lines), first_tokens=True)
    except WorkerMetricsError:
        return
    tokens = counters.first_tokens or {}
    assert min(counters.arrivals, counters.busy_s, counters.slots, *tokens, *tokens.values()) >= 0


def test_growth_is_the_difference() -> None:
    later = WorkerCounters(
        arrivals=50, busy_s=40, queued_s=3, finished=44, service_s=36, share_s=20, slots=16
    )
    assert later.since(COUNTERS) == WorkerCounters(
        arrivals=10, busy_s=8.5, queued_s=0.75, finished=6, service_s=6, share_s=7.25, slots=16
    )


@pytest.mark.parametrize("field", ["arrivals", "busy_s", "queued_s", "finished", "service_s", "share_s"])
def test_of_a_worker_that_began_anew_everything_is_growth(field: str) -> None:
    values = dict.fromkeys(WorkerCounters.__slots__[:7], 100.0) | {field: 1.0}
    later = WorkerCounters(**values)
    assert later.since(COUNTERS) == later


@pytest.mark.parametrize(
    ("line", "read"), [(line, number in {*range(2, 8), 9}) for number, line in enumerate(TEXT.splitlines())]
)
def test_a_line_of_great_length_is_not_parsed(line: str, read: bool) -> None:
    """A parser would take seconds for a worker's million labels, in which nothing else happens."""
    name, _, value = line.partition(" ")
    labels = ",".join(f'l{number}=""' for number in range(1000))
    text = TEXT.replace(line, f"{name}{{{labels}}} {value}")
    if not read:
        assert read_counters(text) == COUNTERS
        return
    with pytest.raises(WorkerMetricsError, match="can't be read"):
        read_counters(text)
