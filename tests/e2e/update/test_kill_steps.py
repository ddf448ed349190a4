"""Real requests while an anchor is replaced by an operator that is killed at each of its writes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pykube
import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.images import specs
from zerolayer_dev.testing import bundles
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.fault_points import EveryWrite
from zerolayer_dev.testing.gateway import Gateway
from zerolayer_dev.testing.load import EVERY_KIND, Load
from zerolayer_dev.testing.pools import DEMO_MODEL, cpu_pool
from zerolayer_dev.testing.release import NAMESPACE, Release
from zerolayer_dev.testing.struck_operator import StruckOperator
from zerolayer_dev.testing.update_courses import COURSES, Course
from zerolayer_dev.testing.update_pool import UpdatedPool

pytestmark = [
    pytest.mark.promise("killed-at-every-step"),
    pytest.mark.long,
    pytest.mark.timeout(2400),
]

UPDATE = {"strategy": "Canary", "canaryWeight": 50, "soak": "1h"}
PATIENCE_S = 900


@pytest.fixture
def alone(cluster: LocalCluster, release: Release) -> Iterator[None]:
    """No operator but the test's own."""

    def scale(replicas: int) -> None:
        cluster.kubectl("-n", NAMESPACE, "scale", "deployments", "--all", f"--replicas={replicas}")
        cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployments", "--timeout=120s")

    scale(0)
    yield
    scale(1)


@pytest.fixture
def struck(
    cluster: LocalCluster, alone: None, namespace: str, traefik: Gateway, tmp_path: Path
) -> Iterator[StruckOperator]:
    """The test's own operator, which is killed."""
    account = Account(cluster, namespace, watch=(namespace,), gateway={"enabled": True})
    image = specs.reference("worker")
    with StruckOperator(cluster, account, tmp_path, gateway=True, worker_image=image) as operator:
        yield operator
    account.remove()


@pytest.fixture
def anchors(cluster: LocalCluster, namespace: str, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """What a pool says of each version of an anchor."""
    made: dict[str, dict[str, Any]] = {}
    for seed, version in enumerate(("v1", "v2", "v3")):
        bundle = bundles.noisy_bundle(tmp_path / version, version, noise=0.01, seed=seed)
        body = bundles.config_map(f"facts-{version}", namespace, tmp_path / version)
        cluster.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(body))
        made[version] = bundles.anchor_spec(bundle, f"facts-{version}")
    return made


@pytest.fixture
def pool(
    cluster: LocalCluster,
    api: pykube.HTTPClient,
    struck: StruckOperator,
    namespace: str,
    traefik: Gateway,
    anchors: dict[str, dict[str, Any]],
) -> Callable[[Course], UpdatedPool]:
    """Makes a pool of one worker behind the gateway."""

    def make(course: Course) -> UpdatedPool:
        routing = {"gateway": {"parentRefs": [traefik.parent_ref]}}
        spec = {"anchor": anchors["v1"], "routing": routing, "update": UPDATE | course.update}
        cluster.kubectl("apply", "--filename=-", stdin=json.dumps(cpu_pool("struck", namespace, **spec)))
        return UpdatedPool(api, cluster.kubectl, namespace, "struck")

    return make


@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.name.replace(" ", "-"))
def test_no_request_is_lost(
    struck: StruckOperator,
    pool: Callable[[Course], UpdatedPool],
    anchors: dict[str, dict[str, Any]],
    traefik: Gateway,
    course: Course,
    figures: Callable[..., None],
) -> None:
    """Killed before and after every write of an update the operator loses no request of real clients."""
    changing = pool(course)
    changing.wait_ready(1)
    points = struck.points = EveryWrite()
    by_gateway = Load(traefik.url, model=DEMO_MODEL, max_tokens=4, intent="deterministic")
    by_service = Load(
        changing.url, model=DEMO_MODEL, max_tokens=4, intent="deterministic", clients=EVERY_KIND[:2]
    )
    with by_gateway, by_service:
        by_gateway.wait_for_more(8, seconds=240)
        points.armed = True
        course.go(changing, lambda version: changing.change(anchor=anchors[version]))
        struck.wait_quiet(seconds=PATIENCE_S)
        points.armed = False
        by_gateway.wait_for_more(8, seconds=240)
    attempts = [*by_gateway.attempts, *by_service.attempts]
    known = {entry[side] for entry in changing.history for side in ("fromRevision", "toRevision")}
    figures(
        update=course.name,
        points_of_writes=points.writes,
        kills=struck.kills,
        requests=len(attempts),
        failed=sum(bool(attempt.failure) for attempt in attempts),
        revisions=len({attempt.revision for attempt in attempts}),
    )

    assert [*by_gateway.failures, *by_service.failures] == []
    assert {attempt.revision for attempt in attempts} <= known
    assert tuple(entry["end"] for entry in changing.history) == course.ends
