"""Anchors are replaced under load through a real gateway."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from zerolayer_dev.testing import bundles
from zerolayer_dev.testing.askers import Answer, Askers, Conversations, Question
from zerolayer_dev.testing.pools import DEMO_MODEL
from zerolayer_dev.testing.update_pool import UpdatedPool

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

WEIGHT = 10
REQUESTS = 2000
SETTLED_S = 5.0
SWITCH_S = 2.0
TOGETHER = 40
"""Conversations at the same time: after a roll-back one worker answers all, and has room for 72 requests."""
UPDATE = {
    "canaryWeight": WEIGHT,
    "soak": "2h",
    "minSamples": 100,
    "blueRetention": "3m",
    "failedRetention": "10s",
}
QUESTION = Question(DEMO_MODEL)


@pytest.fixture
def packed(cluster, namespace: str, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Puts a bundle into a ConfigMap and returns what a pool says of it: `packed("v1", noise=0.001)`."""

    def packed(version: str, **made: Any) -> dict[str, Any]:
        file = tmp_path / f"{version}.safetensors"
        bundle = bundles.noisy_bundle(file, version, **made)
        body = bundles.config_map(version, namespace, file)
        cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body))
        return bundles.anchor_spec(bundle, version)

    return packed


@pytest.fixture
def routed(pool, cluster, api, traefik, packed, namespace: str) -> UpdatedPool:
    """A pool of one worker with anchor v1, behind the gateway."""
    made = pool(
        "routed",
        anchor=packed("v1"),
        update=UPDATE,
        routing={"gateway": {"parentRefs": [traefik.parent_ref]}},
    )
    made.wait_ready(1)
    return UpdatedPool(api, cluster.kubectl, namespace, "routed")


def weights(pool: UpdatedPool) -> dict[str, int]:
    """Weights of the route's last rule, by Service."""
    said = pool.kubectl("-n", pool.namespace, "get", "httproute", pool.name, "-o", "json")
    backends = json.loads(said)["spec"]["rules"][-1]["backendRefs"]
    return {item["name"].rsplit("-", 1)[-1]: item["weight"] for item in backends}


def share(answers: list[Answer], revision: str) -> int:
    return sum(answer.revision == revision for answer in answers)


@pytest.mark.promise("update-under-load")
def test_good_bundle_is_promoted_under_load(routed: UpdatedPool, traefik, packed, figures) -> None:
    """0, 10 %, soak, 100 %: nothing fails, the canary's share is its weight's, and the switch is prompt."""
    blue = routed.status["servingRevision"]
    with Askers(traefik.url, QUESTION) as load:
        load.wait_for_more(20, seconds=120)
        routed.change(anchor=packed("v2", noise=0.0005))
        green = routed.wait_step("Soak", seconds=300)["toRevision"]
        routed.wait(lambda: weights(routed), lambda seen: seen.get(green) == WEIGHT, what="10 %", seconds=30)
        time.sleep(SWITCH_S)
        soak_began, before = time.monotonic(), len(load.answers)
        load.wait_for_more(REQUESTS + load.clients, seconds=1200)
        routed.wait(
            lambda: routed.update, lambda seen: seen["verdict"] == "Pass", what="a verdict", seconds=120
        )
        soaked = [answer for answer in load.answers[before:] if answer.began >= soak_began]
        routed.change(update={**UPDATE, "soak": "10s"})
        decided_at = time.monotonic()
        routed.wait(lambda: weights(routed), lambda seen: set(seen) == {green}, what="the switch", seconds=60)
        switched_at = time.monotonic()
        retained = routed.wait_step("Retain")
        load.wait_for_more(100, seconds=120)
        late = [answer for answer in load.since(switched_at + SETTLED_S) if answer.revision == blue]
        load.wait_for_more(20, seconds=120)
    low, high = stats.binom.interval(0.999, len(soaked), WEIGHT / 100)
    canary = share(soaked, green)
    figures(
        requests=len(load.answers),
        failed=len(load.failures),
        streams=len(load.answers) // 2,
        soaked=len(soaked),
        canary=canary,
        low=int(low),
        high=int(high),
        switch_s=round(switched_at - decided_at, 2),
        late_on_blue=len(late),
        samples=retained["samples"],
    )

    assert load.failures == []
    assert len(soaked) >= REQUESTS
    assert low <= canary <= high
    assert {answer.revision for answer in load.answers} == {blue, green}
    assert switched_at - decided_at <= SWITCH_S
    assert late == []
    assert routed.status["anchor"]["active"]["version"] == "v2"


@pytest.mark.promise("one-version-per-conversation")
def test_conversations_have_one_version(routed: UpdatedPool, traefik, packed, figures) -> None:
    """100 conversations of 6 turns across a promotion, and 100 across a roll-back."""
    blue = routed.status["servingRevision"]
    routed.change(anchor=packed("v2", noise=0.0005))
    green = routed.wait_step("Soak", seconds=300)["toRevision"]
    routed.wait(lambda: weights(routed), lambda seen: seen.get(green) == WEIGHT, what="10 %", seconds=30)
    time.sleep(SWITCH_S)

    left = Conversations(traefik.url, QUESTION, together=TOGETHER, pause_s=2.0)
    with left.running(100, (blue, green)):
        left.wait_for_turns(2 * TOGETHER)
        routed.annotate("rollback", green)
    over = routed.wait_over(seconds=300)
    changes = [[a.revision for a in turns if a.changed] for turns in left.held]
    paths = {tuple(dict.fromkeys(answer.revision for answer in turns)) for turns in left.held}
    assert over["end"] == "RolledBack"
    assert [answer.failure for turns in left.held for answer in turns if answer.failure] == []
    assert paths <= {(blue,), (green,), (green, blue)}
    for turns in left.held:
        moved = any(answer.revision != turns[0].revision for answer in turns)
        told = sum(answer.changed for answer in turns)
        # One that names green only after the roll-back is told so in its first turn, and never moves.
        assert told == 1 if moved else told <= 1

    routed.change(update={**UPDATE, "minSamples": 1})
    routed.wait_step("Soak", seconds=300)
    routed.wait(lambda: weights(routed), lambda seen: seen.get(green) == WEIGHT, what="10 %", seconds=30)
    time.sleep(SWITCH_S)
    kept = Conversations(traefik.url, QUESTION, together=TOGETHER, pause_s=2.0)
    with kept.running(100, (blue, green)):
        kept.wait_for_turns(2 * TOGETHER)
        routed.annotate("promote", green)
        routed.wait_step("Retain", seconds=120)
        switched_at = time.monotonic()
    spans = sum(turns[0].began < switched_at < turns[-1].ended for turns in kept.held)
    mixed = [turns for turns in kept.held if len({answer.revision for answer in turns}) > 1]
    figures(
        conversations=len(kept.held) + len(left.held),
        turns=sum(map(len, kept.held)) + sum(map(len, left.held)),
        promoted_with_two_versions=len(mixed),
        across_the_switch=spans,
        rolled_back_changed=sum(map(bool, changes)),
        changed_twice=sum(len(item) > 1 for item in changes),
    )
    assert [answer.failure for turns in kept.held for answer in turns if answer.failure] == []
    assert mixed == []
    assert spans >= TOGETHER // 2
