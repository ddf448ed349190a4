"""The replay of the HorizontalPodAutoscaler's algorithm against the real controller."""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from zerolayer_dev.cluster import launch
from zerolayer_dev.cluster.layout import Size
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing import hpa_record
from zerolayer_dev.testing.audit import AuditLog
from zerolayer_dev.testing.hpa_record import Sync
from zerolayer_dev.testing.hpa_series import WINDOW_S, Series, Setting, generate
from zerolayer_dev.testing.hpa_stage import SCALABLE_CRD, SYNC_S, Stage, setting_of
from zerolayer_dev.testing.metrics_api import MetricsApi, Query, register
from zerolayer_operator.decide.hpa_replay import Replay, per_pod_proposal

NAME = f"hpa-{os.getpid()}"
MANAGER = "kube-controller-manager"
SEED = 20_261_129
SECONDS = 75
RESTART_AT = 50


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """A cluster whose controller looks every second, asks without a limit, and is recorded in full."""
    policy = tmp_path / "audit-policy.yaml"
    policy.write_text(json.dumps(hpa_record.AUDIT_POLICY))
    manager = (
        f"--horizontal-pod-autoscaler-sync-period={SYNC_S}s",
        f"--horizontal-pod-autoscaler-downscale-stabilization={WINDOW_S}s",
        "--concurrent-horizontal-pod-autoscaler-syncs=50",
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
        *hpa_record.LOG_FLAGS,
    )
    flags = {MANAGER: manager, "kube-apiserver": (f"--audit-policy-file={policy}",)}
    started = launch.up(NAME, Size.CONTROL_PLANE, tied=True, flags=flags)
    yield started
    started.down()


@dataclass
class Comparison:
    """One series' syncs, done again by two replays that differ in their clock alone.

    The controller reads its clock some milliseconds after the answer whose time is the replay's. Where a
    window or a period ends between the two, only the controller's own clock, as its log has it, tells which
    side it saw; such a sync is counted as near an edge.

    Attributes:
        series: whose syncs.
        asked: the replay by the time of the answer.
        own: the replay by the controller's clock.
        counts: of syncs, by what was seen.
        differences: syncs that neither agrees with.
    """

    series: Series
    asked: Replay = field(default_factory=lambda: Replay(WINDOW_S))
    own: Replay = field(default_factory=lambda: Replay(WINDOW_S))
    counts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def restart(self) -> None:
        """The controller has forgotten everything."""
        self.asked, self.own = Replay(WINDOW_S), Replay(WINDOW_S)

    def add(self, sync: Sync, setting: Setting) -> None:
        """Compares one sync."""
        self._count(sync)
        proposal = self._proposal(sync, setting)
        by_answer = replayed(self.asked, sync, proposal, setting, answered(sync))
        by_controller = replayed(self.own, sync, proposal, setting, logged(sync))
        if proposal != sync.proposed or sync.size not in {by_answer, by_controller}:
            self.differences.append(
                f"{self.series.name}: {proposal} and {by_answer} instead of {sync} under {setting}"
            )
        elif by_answer != sync.size:
            self.counts["near_edge"] += 1
            self.asked = deepcopy(self.own)
        elif by_controller != sync.size:
            self.own = deepcopy(self.asked)

    def _proposal(self, sync: Sync, setting: Setting) -> int | None:
        load = sync.query.answer.sum_milli if sync.query else None
        if load is None:
            return None
        return per_pod_proposal(load, self.series.target_milli, sync.existing, setting.behavior)

    def _count(self, sync: Sync) -> None:
        self.counts["syncs"] += 1
        self.counts["changes"] += sync.wrote is not None
        self.counts["conflicts"] += sync.conflicts
        self.counts["without_metric"] += sync.query is not None and sync.proposed is None
        self.counts["without_query"] += sync.query is None


class Clock(NamedTuple):
    """What a clock shows in the course of a sync.

    Attributes:
        read: once the size is known.
        decided: at the decision.
        changed: after the change.
    """

    read: float
    decided: float
    changed: float


def answered(sync: Sync) -> Clock:
    return Clock(sync.query.at if sync.query else sync.at, sync.at, sync.at)


def logged(sync: Sync) -> Clock:
    decided = sync.proposed_at or sync.at
    return Clock(sync.read_at, decided, sync.done_at or decided)


def replayed(replay: Replay, sync: Sync, proposal: int | None, setting: Setting, clock: Clock) -> int:
    if sync.query and not replay._recommendations:
        # The first thing that the controller remembers is the size, which it reads before it asks.
        replay.sync(clock.read, sync.replicas, None, setting.bounds, setting.behavior)
    size = replay.sync(clock.decided, sync.replicas, proposal, setting.bounds, setting.behavior)
    for change in (*replay._added, *replay._removed):
        if change.at == clock.decided:
            change.at = clock.changed
    return size


@dataclass
class Played:
    """What a cluster did with the series, by their names.

    Attributes:
        lives: syncs before and after the controller's restart.
        changed_at: when each setting was in place, in seconds since the epoch.
    """

    lives: dict[str, tuple[list[Sync], list[Sync]]]
    changed_at: dict[str, list[float]]


async def play(cluster: LocalCluster, series: list[Series], folder: Path) -> Played:
    """Plays the series, with a restart of the controller on the way."""
    host = str(cluster.addresses.host)
    # It would look for new kinds every half minute only.
    cluster.control.stop(MANAGER)
    create(cluster, SCALABLE_CRD)
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{SCALABLE_CRD['metadata']['name']}")
    configuration = Configuration()
    await config.load_kube_config(config_file=str(cluster.kubeconfig), client_configuration=configuration)
    async with ApiClient(configuration) as client:
        stage = Stage(client, "default", series)
        api = MetricsApi(stage.answer)
        async with api.serve(host, folder) as port:
            # In a thread: the API server asks for what there is, and is answered here.
            await asyncio.to_thread(register, cluster, host, port)
            cluster.control.start(MANAGER)
            await stage.set_up()
            restart = asyncio.create_task(restarted(cluster))
            await stage.play(api, SECONDS)
            cluster.control.stop(MANAGER)
    return Played(recorded(cluster, api.queries, await restart), stage.changed_at)


def create(cluster: LocalCluster, *objects: dict[str, Any]) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": objects}
    cluster.kubectl("create", "--filename=-", stdin=json.dumps(items))


def recorded(
    cluster: LocalCluster, queries: list[Query], restarted_at: float
) -> dict[str, tuple[list[Sync], list[Sync]]]:
    calls = [
        call
        for call in AuditLog(cluster.audit_log).calls(user=hpa_record.CONTROLLER)
        if call.permission.resource == "scalables/scale"
    ]
    return hpa_record.lives(calls, queries, cluster.state.logs / f"{MANAGER}.log", restarted_at)


async def restarted(cluster: LocalCluster) -> float:
    await asyncio.sleep(RESTART_AT)
    cluster.kill(MANAGER)
    return time.time()


def cut_short(sync: Sync) -> bool:
    """Tells whether a sync should have come to an end, and was not seen to."""
    if sync.done_at is not None:
        return False
    return sync.query is None or sync.query.answer.sum_milli is not None


def compare(series: Series, played: Played) -> Comparison:
    """Compares all syncs of one series but those that the controller's end cut short."""
    comparison = Comparison(series)
    for life in played.lives[series.name]:
        comparison.restart()
        for sync in life:
            if sync is life[-1] and cut_short(sync):
                comparison.counts["cut_short"] += 1
            else:
                in_force = sum(at < sync.read_at for at in played.changed_at[series.name]) - 1
                index = setting_of(sync.query.selector) if sync.query else in_force
                comparison.add(sync, series.settings[index][1])
    return comparison


@pytest.mark.promise("replay-is-the-hpa")
@pytest.mark.timeout(600)
async def test_the_replay_is_the_real_controller(cluster: LocalCluster, tmp_path: Path, figures) -> None:
    """The replay of the HPA sets the real controller's size at every sync of over 20 load series."""
    series = generate(Random(SEED), SECONDS)

    played = await play(cluster, series, tmp_path)

    compared = [compare(item, played) for item in series]
    counts = sum((item.counts for item in compared), Counter())
    differences = [line for item in compared for line in item.differences]
    syncs = [sync for lives in played.lives.values() for life in lives for sync in life]
    lags = sorted(sync.done_at - sync.at for sync in syncs if sync.done_at)
    figures(
        series=len(series),
        syncs=counts["syncs"],
        differences=len(differences),
        **{name: count for name, count in sorted(counts.items()) if name != "syncs"},
        median_lag_ms=1000 * lags[len(lags) // 2],
        longest_lag_ms=1000 * lags[-1],
    )
    assert not differences, "\n".join(differences[:20])
    assert len(series) >= 20
    assert min(item.counts["syncs"] for item in compared) > SECONDS / 4
    assert min(counts[name] for name in ("changes", "without_metric", "without_query")) > len(series)
