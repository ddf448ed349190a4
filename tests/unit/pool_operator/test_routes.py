"""The HTTPRoute that is built, and how a live one is read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.observed_routes import MADE_AT, ROUTE, gateway, live, parent, routed
from zerolayer_operator.build.routes import http_route
from zerolayer_operator.build.services import canary_service, revision_service, service
from zerolayer_operator.decide.traffic import Pinned, Traffic
from zerolayer_operator.observe.access import timestamp
from zerolayer_operator.observe.route import live_route

BLUE, GREEN = "b" * 10, "c" * 10
POOL = routed(BLUE, GREEN)


def rules(traffic: Traffic) -> list[dict[str, Any]]:
    return http_route(POOL, gateway(), traffic)["spec"]["rules"]


def weights(rule: dict[str, Any]) -> dict[str, int]:
    return {item["name"].removeprefix("pool-"): item["weight"] for item in rule["backendRefs"]}


def headers(rule: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item["name"], item["value"]) for match in rule["matches"] for item in match["headers"]]


@pytest.mark.parametrize(
    ("traffic", "expected"),
    [
        (Traffic(BLUE), {BLUE: 100}),
        (Traffic(BLUE, GREEN, 10), {BLUE: 90, GREEN: 10}),
        (Traffic(BLUE, GREEN, 0), {BLUE: 100}),
        (Traffic(BLUE, GREEN, 100), {GREEN: 100}),
    ],
)
def test_requests_that_name_nothing_go_by_weight(traffic: Traffic, expected: dict[str, int]) -> None:
    (rule,) = rules(traffic)

    assert weights(rule) == expected
    assert "matches" not in rule


def test_requests_that_name_a_revision_or_a_version_go_where_it_is() -> None:
    pinned = (Pinned(BLUE, "v1"), Pinned(GREEN, "v2"))
    *named, rest = rules(Traffic(BLUE, GREEN, 10, pinned))

    assert [(headers(rule), weights(rule)) for rule in named] == [
        ([("zero-layer-revision", BLUE)], {BLUE: 100}),
        ([("zero-layer-revision", GREEN)], {GREEN: 100}),
        ([("zero-layer-anchor", "v1")], {BLUE: 100}),
        ([("zero-layer-anchor", "v2")], {GREEN: 100}),
    ]
    assert {item["type"] for rule in named for match in rule["matches"] for item in match["headers"]} == {
        "Exact"
    }
    assert weights(rest) == {BLUE: 90, GREEN: 10}


def test_version_that_both_have_cannot_be_named() -> None:
    *named, _ = rules(Traffic(BLUE, GREEN, 10, (Pinned(BLUE), Pinned(GREEN))))

    assert [headers(rule) for rule in named] == [
        [("zero-layer-revision", BLUE)],
        [("zero-layer-revision", GREEN)],
    ]


def test_no_answer_is_cut_off_for_being_long() -> None:
    for rule in rules(Traffic(BLUE, GREEN, 10, (Pinned(BLUE, "v1"),))):
        assert rule["timeouts"] == {"request": "0s"}


def test_gateways_and_hosts_are_those_of_the_spec() -> None:
    refs = [{"name": "gate", "namespace": "infra", "sectionName": "web", "port": 80}, {"name": "other"}]
    made = http_route(POOL, gateway(parentRefs=refs, hostnames=["a.example"]), Traffic(BLUE))

    assert made["apiVersion"] == "gateway.networking.k8s.io/v1"
    assert (made["kind"], made["metadata"]["name"]) == ("HTTPRoute", "pool")
    assert made["spec"]["parentRefs"] == refs
    assert made["spec"]["hostnames"] == ["a.example"]
    assert "hostnames" not in http_route(POOL, gateway(), Traffic(BLUE))["spec"]


def test_services_select_what_they_are_named_after() -> None:
    one = {"zerolayer.dev/pool": "pool", "zerolayer.dev/revision": BLUE}
    both = {"zerolayer.dev/pool": "pool"}
    made = [
        (service(POOL, BLUE), "pool", one),
        (service(POOL, BLUE, both=True), "pool", both),
        (revision_service(POOL, BLUE), f"pool-{BLUE}", one),
        (canary_service(POOL, BLUE), "pool-canary", one),
    ]
    for body, name, selector in made:
        assert (body["metadata"]["name"], body["spec"]["selector"]) == (name, selector)
        assert body["spec"]["ports"] == made[0][0]["spec"]["ports"]


revisions = st.sampled_from([BLUE, GREEN])
pins = st.tuples() | st.tuples(st.builds(Pinned, revisions, st.none() | st.just("v")))


@given(weight=st.integers(0, 100), canary=st.none() | st.just(GREEN), pinned=pins)
def test_what_is_built_is_read_back(weight: int, canary: str | None, pinned: tuple[Pinned, ...]) -> None:
    traffic = Traffic(BLUE, canary, weight, pinned)
    route = live_route(live(POOL, traffic))

    assert route is not None
    expected = {BLUE: 100 - weight, GREEN: weight} if canary else {BLUE: 100}
    assert route.shares == {revision: share for revision, share in expected.items() if share}
    assert route.pinned == {item.revision for item in pinned}
    assert route.backends == {f"pool-{revision}" for revision in {*route.shares, *route.pinned}}


def test_no_route_is_read_where_none_is_or_it_is_going() -> None:
    assert live_route(POOL) is None
    assert live_route(live(POOL, Traffic(BLUE), deletionTimestamp=MADE_AT)) is None


@pytest.mark.parametrize(
    ("parents", "taken", "reason"),
    [
        ([], None, ""),
        ([parent()], True, ""),
        ([parent(generation=1)], None, ""),
        ([parent("False", reason="NotAllowedByListeners")], False, "NotAllowedByListeners"),
        ([parent(resolved="False", reason="BackendNotFound")], False, "BackendNotFound"),
        ([parent(ref={"name": "other"})], None, ""),
        ([parent(ref={"sectionName": "web"})], None, ""),
        ([parent(ref={"namespace": "default", "group": "gateway.networking.k8s.io"})], True, ""),
        ([parent("False", reason="NoMatchingParent"), parent()], True, ""),
    ],
    ids=[
        "nobody looked",
        "taken",
        "of an earlier route",
        "refused",
        "backend not found",
        "of another gateway",
        "of a listener",
        "namespace in full",
        "one of two controllers",
    ],
)
def test_what_gateways_say(parents: list[Any], taken: bool | None, reason: str) -> None:
    route = live_route(live(POOL, Traffic(BLUE), *parents))

    assert route is not None
    (answer,) = route.answers
    assert (answer.gateway, answer.taken, answer.reason) == ("default/gate", taken, reason)
    assert route.in_force is bool(taken)


def test_time_of_the_operators_own_change_counts() -> None:
    later = "2026-01-02T04:00:00Z"
    fields = [
        {"manager": "traefik", "time": "2026-01-02T05:00:00Z", "subresource": "status"},
        {"manager": "zerolayer-operator", "time": later},
    ]
    for metadata, expected in (({}, MADE_AT), ({"managedFields": fields}, later)):
        route = live_route(live(POOL, Traffic(BLUE), **metadata))
        assert route is not None
        assert route.applied_at == timestamp(expected)


def test_backends_that_hands_put_there_are_read_as_well() -> None:
    of = live(POOL, Traffic(BLUE, GREEN, 10))
    of.children[ROUTE]["spec"]["rules"][0]["backendRefs"] = [
        {"name": f"pool-{BLUE}", "weight": 1},
        {"name": f"pool-{GREEN}", "weight": 3},
        {"name": "else", "weight": 0},
    ]
    route = live_route(of)

    assert route is not None
    assert route.shares == {BLUE: 25, GREEN: 75}
    assert "else" in route.backends
