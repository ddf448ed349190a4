"""When a pool has a route and Services of single revisions, and what is told where requests can't come."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from zerolayer_dev.testing.observed import DEFAULTS, NOW, deployment, pool, serving, spec
from zerolayer_dev.testing.observed_routes import ROUTE, built, gateway, live, parent, routed, routing
from zerolayer_operator.api.names import canary_service_name
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.build.routes import http_route
from zerolayer_operator.build.services import canary_service, revision_service
from zerolayer_operator.decide.plan import plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.decide.routing import PATIENCE, unneeded_routing
from zerolayer_operator.decide.traffic import Pinned, Traffic
from zerolayer_operator.observe.state import ChildKey, ObservedPool

OLD, NEW = "b" * 10, "c" * 10
LATER = NOW + PATIENCE


def told(of: ObservedPool, now=LATER) -> Any:
    status = report(of, plan(of, DEFAULTS, NOW), (), now)
    return next(item for item in status.conditions or () if item.type == "Degraded")


def serves(**fields: Any) -> ObservedPool:
    """A pool that works, with routing."""
    of = spec(routing=routing())
    values = {"deployments": (deployment(of, ready=1),), "status": serving(of), "routable": True}
    return pool(of, **{**values, **fields})


REVISION = revision_hash(spec(routing=routing()))


def with_services(of: ObservedPool, *revisions: str, canary: str | None = None) -> ObservedPool:
    bodies = [revision_service(of, revision) for revision in revisions]
    bodies += [canary_service(of, canary)] if canary else []
    made = {ChildKey("Service", body["metadata"]["name"]): body for body in bodies}
    return replace(of, children={**of.children, **made})


class TestChildren:
    def test_route_comes_after_the_services_that_it_names_and_before_the_pools_own(self) -> None:
        keys = list(built(serves()))
        order = [("Service", f"pool-{REVISION}"), ("HTTPRoute", "pool"), ("Service", "pool")]

        assert [key for key in keys if key in order] == order

    def test_without_routing_there_is_none_of_it(self) -> None:
        of = pool(spec(), routable=True)

        assert {name for kind, name in built(of) if kind == "Service"} == {"pool", "pool-metrics"}
        assert ("HTTPRoute", "pool") not in built(of)

    @pytest.mark.parametrize("routable", [None, False])
    def test_where_there_can_be_no_route_its_services_are_there(self, routable: bool | None) -> None:
        made = built(serves(routable=routable))

        assert ("HTTPRoute", "pool") not in made
        assert ("Service", f"pool-{REVISION}") in made

    def test_revision_that_warms_up_has_its_service_before_it_gets_requests(self) -> None:
        new = spec(routing=routing(), drainSeconds=60)
        made = built(replace(serves(), spec=new))

        assert ("Service", f"pool-{revision_hash(new)}") in made
        (rule,) = made["HTTPRoute", "pool"]["spec"]["rules"]
        assert [item["name"] for item in rule["backendRefs"]] == [f"pool-{REVISION}"]


class TestUnneeded:
    @staticmethod
    def unneeded(of: ObservedPool, traffic: Traffic, *revisions: str) -> set[str]:
        assert of.spec is not None
        return {key.name for key in unneeded_routing(of, of.spec, traffic, revisions)}

    def test_services_go_with_their_revisions_and_the_canary(self) -> None:
        of = with_services(routed(OLD, NEW), OLD, NEW, canary=NEW)

        assert self.unneeded(of, Traffic(OLD, NEW, 10), OLD, NEW) == set()
        assert self.unneeded(of, Traffic(NEW), NEW) == {f"pool-{OLD}", "pool-canary"}

    @pytest.mark.parametrize(
        "traffic", [Traffic(OLD, NEW, 10), Traffic(NEW, pinned=(Pinned(OLD),))], ids=["weight", "pinned"]
    )
    def test_none_goes_that_the_route_still_leads_to(self, traffic: Traffic) -> None:
        of = with_services(live(routed(OLD, NEW), traffic), OLD, NEW)

        assert self.unneeded(of, Traffic(NEW), NEW) == set()

    def test_all_go_with_the_routing_but_those_that_the_route_leads_to_go_after_it(self) -> None:
        of = with_services(live(routed(OLD), Traffic(OLD)), OLD)
        of = replace(of, spec=spec())

        assert ROUTE in plan(of, DEFAULTS, NOW).unwanted
        assert self.unneeded(of, Traffic(OLD), OLD) == {"pool"}
        without = replace(of, children={key: body for key, body in of.children.items() if key != ROUTE})
        assert self.unneeded(without, Traffic(OLD), OLD) == {f"pool-{OLD}"}

    def test_what_somebody_copied_stays(self) -> None:
        of = with_services(pool(spec()), OLD)
        key = ChildKey("Service", f"pool-{OLD}")
        body = of.children[key]
        own = ChildKey("Service", "pool")
        of = replace(of, children={ChildKey("Service", "pool-lb"): body, own: body, key: body})

        assert self.unneeded(of, Traffic(NEW), NEW) == {f"pool-{OLD}"}

    def test_canary_without_a_gateway_has_its_services(self) -> None:
        of = with_services(pool(spec()), OLD, NEW, canary=NEW)

        assert self.unneeded(of, Traffic(OLD, NEW, 10), OLD, NEW) == set()
        assert self.unneeded(of, Traffic(OLD), OLD, NEW) == {
            f"pool-{OLD}",
            f"pool-{NEW}",
            canary_service_name("pool"),
        }


class TestProblems:
    @pytest.mark.parametrize(
        ("routable", "reason", "words"),
        [(None, "GatewayNotEnabled", "gateway.enabled=true"), (False, "GatewayMissing", "Gateway API")],
    )
    def test_installation_without_gateways(self, routable, reason: str, words: str) -> None:
        found = told(serves(routable=routable))

        assert found.reason == reason
        assert words in found.message

    def test_pool_without_routing_needs_none(self) -> None:
        of = spec()
        found = told(pool(of, deployments=(deployment(of, ready=1),), status=serving(of)))

        assert found.status == "False"

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            (
                parent("False", reason="NotAllowedByListeners", message="no!"),
                "NotAllowedByListeners: no!; have",
            ),
            (parent("False", reason="NoMatchingListenerHostname"), "NoMatchingListenerHostname; name hosts"),
            (parent("False", reason="NoMatchingParent"), "NoMatchingParent; name a listener"),
            (parent(resolved="False", reason="BackendNotFound", message="x"), "BackendNotFound: x; `kubectl"),
            (parent(generation=1), "says nothing of HTTPRoute pool"),
            (parent(ref={"name": "other"}), "says nothing of HTTPRoute pool"),
        ],
    )
    def test_route_that_a_gateway_does_not_take(self, said, words: str) -> None:
        of = live(serves(), Traffic(REVISION), said)
        found = told(of)

        assert found.reason == "RouteNotAccepted"
        assert "Gateway default/gate" in found.message
        assert words in found.message

    def test_gateway_has_time_to_answer(self) -> None:
        made = NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
        of = live(serves(), Traffic(REVISION), creationTimestamp=made)

        assert told(of, NOW + PATIENCE).status == "False"
        assert told(of, NOW + PATIENCE + timedelta(seconds=1)).reason == "RouteNotAccepted"

    def test_route_that_is_taken_is_no_problem(self) -> None:
        assert told(live(serves(), Traffic(REVISION), parent())).status == "False"

    def test_route_that_is_about_to_be_made_is_none(self) -> None:
        assert told(serves()).status == "False"


def test_route_is_the_pools_own() -> None:
    (owner,) = http_route(serves(), gateway(), Traffic(OLD))["metadata"]["ownerReferences"]

    assert (owner["kind"], owner["uid"]) == ("ZeroLayerPool", "uid-pool")
