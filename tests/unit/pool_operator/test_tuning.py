"""What one look at a pool's load comes to, and what is told of it."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zerolayer_operator.api.scaling import AutoscalingSpec
from zerolayer_operator.api.status import ScalingStatus
from zerolayer_operator.decide.behavior import behavior_of
from zerolayer_operator.decide.hpa_replay import Behavior, Policy, PolicyKind, Rules, Select
from zerolayer_operator.decide.tuning import FIXED, PATIENCE_S, Look, Tuning, known_load, look_closely
from zerolayer_operator.decide.window import Setting
from zerolayer_operator.observe.autoscaler import AutoscalerSetting, Metric
from zerolayer_operator.observe.load import Counted, LoadSample, ObservedLoad

NOW = 1_000_000.0
HOUR = 240
UTILIZATION = {"type": "Utilization", "target": 50}


def scaling(**fields: Any) -> AutoscalingSpec:
    wanted = {"minReplicas": 1, "maxReplicas": 9, "metric": UTILIZATION, **fields}
    return AutoscalingSpec.model_validate_json(json.dumps(wanted))


def sample(at: float, busy: float | None) -> LoadSample:
    if busy is None:
        return LoadSample(at)
    return LoadSample(at, Counted(60, busy * 60, busy * 60, 0, busy * 60, busy * 60), 0.5, 2)


def load(*busy: float | None, **fields: Any) -> ObservedLoad:
    first = NOW - 15 * (len(busy) - 1)
    samples = tuple(sample(first + 15 * number, value) for number, value in enumerate(busy))
    return ObservedLoad(samples, fields.pop("slots_per_pod", 4.0), **fields)


FLAT = load(*[4.0] * HOUR)
LOOK = Look(
    scaling(), AutoscalerSetting(300, 1), 2, 2, 30.0, FLAT, told=ScalingStatus(window="300s", why="x")
)


def looked(look: Look = LOOK, *, since: float = 1e6, waiting_s: float = 1e6) -> Tuning:
    """A look at a pool whose window was set so many seconds ago."""
    live = look.live or AutoscalerSetting(300, 1)
    remembered = Setting(live.window_s or 300, live.floor, look.replicas, NOW - since)
    return look_closely(look, remembered, waiting_s, NOW)


class TestKnownLoad:
    def test_is_one_figure_for_each_sample(self) -> None:
        assert list(known_load(load(1.0, 2.0, 3.0).samples)) == [1.0, 2.0, 3.0]

    def test_lasts_over_a_short_gap(self) -> None:
        assert list(known_load(load(1.0, None, None, 2.0).samples)) == [1.0, 1.0, 1.0, 2.0]

    def test_lasts_where_nobody_looked_for_a_moment(self) -> None:
        samples = load(1.0, 5.0, 2.0).samples
        assert list(known_load((samples[0], samples[2]))) == [1.0, 1.0, 2.0]

    def test_begins_anew_after_a_long_gap(self) -> None:
        assert list(known_load(load(9.0, *[None] * 5, 2.0).samples)) == [2.0]

    @given(st.lists(st.none() | st.integers(0, 9).map(float), max_size=60))
    def test_ends_with_what_was_known_last(self, busy: list[float | None]) -> None:
        known = [value for value in busy if value is not None]
        found = list(known_load(load(*busy).samples))
        assert bool(found) == bool(known)
        assert not known or found[-1] == known[-1]
        assert len(found) <= len(busy)
        assert set(found) <= set(known)


class TestWindow:
    def test_flat_load_narrows_it_by_a_step(self) -> None:
        assert looked().setting.window_s == 240

    def test_not_before_its_time(self) -> None:
        assert looked(since=59).setting.window_s == 300
        assert looked(since=60).setting.window_s == 240

    def test_shortest_is_the_authors(self) -> None:
        look = replace(LOOK, live=AutoscalerSetting(120, 1), scaling=scaling(scaleDown={"minWindow": "90s"}))
        assert looked(look).setting.window_s == 90

    def test_bursts_widen_it_at_once(self) -> None:
        bursty = load(*([1.0] * 12 + [9.0] * 4) * 15)
        look = replace(LOOK, live=AutoscalerSetting(60, 1), load=bursty)
        assert looked(look, since=1).setting.window_s == 300

    def test_is_widest_while_the_load_is_unknown(self) -> None:
        look = replace(LOOK, live=AutoscalerSetting(60, 3), load=replace(FLAT, unknown="Prometheus is gone"))
        found = looked(look)
        assert (found.setting.window_s, found.setting.floor) == (300, 3)
        assert found.why == "Prometheus is gone"
        assert found.offered is None

    def test_floor_that_a_hand_has_set_is_no_hold(self) -> None:
        look = replace(LOOK, live=AutoscalerSetting(300, 7), load=replace(FLAT, unknown="Prometheus is gone"))
        assert look_closely(look, Setting(300, 2, 2, NOW), 1e6, NOW).setting.floor == 2
        young = replace(LOOK, live=AutoscalerSetting(300, 7), replicas=9, load=load(*[4.0] * 8))
        assert look_closely(young, Setting(300, 2, 9, NOW), 1e6, NOW).setting.floor == 2

    def test_pool_that_sleeps_wakes_with_its_fewest_workers(self) -> None:
        metric = {"type": "PromQL", "target": 5, "query": "gateway_requests"}
        sleepy = scaling(provider="KEDA", scaleToZero=True, minReplicas=2, metric=metric)
        nobody = replace(FLAT, unknown="no worker of the pool is ready")
        asleep = replace(
            LOOK, scaling=sleepy, live=AutoscalerSetting(60, 6), replicas=0, ready=0, load=nobody
        )
        slept = look_closely(asleep, Setting(60, 6, 7, NOW), 1e6, NOW).setting
        assert (slept.window_s, slept.floor) == (300, 2)
        waking = replace(asleep, live=AutoscalerSetting(300, 2), replicas=4)
        assert look_closely(waking, slept, 1e6, NOW).setting.floor == 2
        hand = replace(asleep, scaling=scaling())
        assert look_closely(hand, Setting(60, 6, 7, NOW), 1e6, NOW).setting.floor == 7

    def test_is_widest_during_an_update(self) -> None:
        found = looked(replace(LOOK, live=AutoscalerSetting(60, 1), updating=True))
        assert found.setting.window_s == 300
        assert "update" in found.why

    def test_is_widest_where_no_cold_start_was_measured(self) -> None:
        assert looked(replace(LOOK, cold_start_s=math.inf)).setting.window_s == 300

    def test_is_the_authors_with_mode_fixed(self) -> None:
        fixed = scaling(scaleDown={"mode": "Fixed", "fixedWindow": "42s"}, minReplicas=2)
        found = looked(replace(LOOK, scaling=fixed, load=replace(FLAT, unknown="x")))
        assert (found.setting.window_s, found.setting.floor, found.by_load) == (42, 2, False)

    @pytest.mark.parametrize("live", [None, AutoscalerSetting(None, 1)], ids=["new", "behavior taken away"])
    def test_begins_with_the_widest(self, live: AutoscalerSetting | None) -> None:
        found = look_closely(replace(LOOK, live=live, told=None), None, 0.0, NOW)
        assert found.setting.window_s == 300

    def test_wider_than_the_author_allows_is_put_right(self) -> None:
        look = replace(LOOK, live=AutoscalerSetting(3600, 1), load=load(*([1.0] * 12 + [9.0] * 4) * 15))
        assert looked(look).setting.window_s == 300


class TestStart:
    """The operator has just started, and its first questions are not answered yet."""

    PENDING = replace(
        LOOK,
        live=AutoscalerSetting(60, 3),
        load=ObservedLoad(unknown="not asked yet", pending=True),
        told=ScalingStatus(window="60s", hold=3, why="flatness 0.93 over 20m: 120s → 60s"),
    )

    def test_leaves_everything_as_it_is(self) -> None:
        found = look_closely(self.PENDING, None, 0.0, NOW)
        assert (found.setting.window_s, found.setting.floor) == (60, 3)
        assert found.why == "flatness 0.93 over 20m: 120s → 60s"
        assert found.pending

    def test_is_over_after_a_while(self) -> None:
        found = look_closely(self.PENDING, None, PATIENCE_S, NOW)
        assert (found.setting.window_s, found.pending) == (300, False)

    def test_is_none_of_a_fixed_window(self) -> None:
        fixed = replace(self.PENDING, scaling=scaling(scaleDown={"mode": "Fixed"}))
        found = look_closely(fixed, None, 0.0, NOW)
        assert (found.setting.window_s, found.pending, found.why) == (300, False, FIXED)
        before = replace(self.PENDING, told=ScalingStatus(window="300s", why=FIXED))
        assert look_closely(before, None, 0.0, NOW).why == "nothing is known of the load yet"

    def test_does_not_outlast_a_fault(self) -> None:
        look = replace(self.PENDING, load=ObservedLoad(unknown="Prometheus is gone"))
        assert look_closely(look, None, 0.0, NOW).setting.window_s == 300

    def test_keeps_a_hold_until_as_much_is_known_as_it_was_found_with(self) -> None:
        little = replace(self.PENDING, load=load(*[1.0] * 39), replicas=3)
        assert looked(little).setting.floor == 3
        enough = replace(little, load=load(*[1.0] * 40))
        assert looked(enough).setting.floor == 1


class TestHold:
    def test_peak_of_the_last_minutes_fits(self) -> None:
        # 8 slots busy, and 1.9 times the root of that to spare: 13.4 slots on workers with 4 each.
        look = replace(LOOK, load=load(*[8.0] * HOUR), replicas=5)
        assert looked(look).setting.floor == 4

    def test_never_exceeds_the_authors_maximum(self) -> None:
        look = replace(LOOK, load=load(*[80.0] * HOUR), replicas=9)
        assert looked(look).setting.floor == 9

    @given(
        busy=st.lists(st.none() | st.floats(0, 400, allow_nan=False), min_size=1, max_size=80),
        unknown=st.none() | st.just("gone"),
        live=st.none() | st.builds(AutoscalerSetting, st.none() | st.integers(0, 3600), st.integers(0, 99)),
        replicas=st.integers(0, 99),
        bounds=st.tuples(st.integers(1, 20), st.integers(0, 20)),
        cold=st.floats(0, 4000) | st.just(math.inf),
        updating=st.booleans(),
    )
    def test_whatever_is_seen_the_authors_limits_hold(
        self,
        busy: list[float | None],
        unknown: str | None,
        live: AutoscalerSetting | None,
        replicas: int,
        bounds: tuple[int, int],
        cold: float,
        updating: bool,
    ) -> None:
        least, more = bounds
        look = Look(
            scaling(minReplicas=least, maxReplicas=least + more, scaleDown={"minWindow": "45s"}),
            live,
            replicas,
            0,
            cold,
            load(*busy, unknown=unknown),
            updating=updating,
        )
        found = look_closely(look, None, 1e6, NOW)
        assert 45 <= found.setting.window_s <= 300
        assert least <= found.setting.floor <= least + more
        assert found.why
        if unknown is not None or updating or cold == math.inf:
            assert found.setting.window_s == 300


class TestLies:
    """Figures that are possible, one by one, and make no sense together."""

    FIGURE = st.floats(0, 1e15)

    @given(
        counted=st.lists(
            st.builds(Counted, st.just(60.0), FIGURE, FIGURE, FIGURE, FIGURE, FIGURE), min_size=1, max_size=60
        ),
        slots=st.floats(1, 1e15),
        metric=st.builds(Metric, st.integers(-(2**63), 2**63), st.integers(1, 2**63)),
        kind=st.sampled_from(["CPU", "Utilization", "Concurrency", "TokenRate"]),
        target=st.integers(1, 100),
    )
    @example([Counted(60.0, 1e15, 0, 1e15, 1e-300, 1e15)], 1.0, Metric(1, 1), "TokenRate", 1)
    def test_no_figure_is_too_much(
        self, counted: list[Counted], slots: float, metric: Metric, kind: str, target: int
    ) -> None:
        samples = tuple(LoadSample(NOW + 15 * at, item, 0.5, 2) for at, item in enumerate(counted))
        look = replace(
            LOOK,
            scaling=scaling(metric={"type": kind, "target": target}),
            load=ObservedLoad(samples, slots),
            metric=metric,
        )
        found = looked(look)
        assert 60 <= found.setting.window_s <= 300
        assert 1 <= found.setting.floor <= 9

    def test_a_metric_that_dwarfs_its_target_is_told_of_without_a_replay(self) -> None:
        octets = scaling(metric={"type": "PromQL", "target": 1, "query": "octets"})
        fed = replace(LOOK, scaling=octets, metric=Metric(usage_milli=10**10, target_milli=1000))
        assert looked(fed).why == "flatness 1.00 over 20m: 300s → 240s"

    @pytest.mark.parametrize("slots", [None, 0.0])
    def test_what_cannot_be_made_use_of_is_unknown_everywhere(self, slots: float | None) -> None:
        found = looked(replace(LOOK, load=load(*[4.0] * HOUR, slots_per_pod=slots)))
        assert found.unknown == found.why
        assert "how many requests they can run" in found.why
        assert (found.offered, found.setting.flatness, found.setting.window_s) == (None, None, 300)


class TestWhy:
    def test_change_is_told_with_what_a_replay_makes_of_it(self) -> None:
        why = looked().why
        assert why.startswith("flatness 1.00 over 20m: 300s → 240s, a replay of the last 60m saves ")
        assert why.endswith("% replica-time, 0 more regrets")

    def test_of_a_metric_that_says_nothing_about_slots_is_told_without(self) -> None:
        tokens = scaling(metric={"type": "TokenRate", "target": 5})
        assert looked(replace(LOOK, scaling=tokens)).why == "flatness 1.00 over 20m: 300s → 240s"
        fed = replace(LOOK, scaling=tokens, metric=Metric(usage_milli=8000, target_milli=5000))
        assert "a replay of" in looked(fed).why

    def test_stands_while_the_window_does(self) -> None:
        told = ScalingStatus(window="60s", why="flatness 0.93 over 20m: 120s → 60s")
        look = replace(LOOK, live=AutoscalerSetting(60, 1), told=told)
        assert looked(look).why == told.why

    def test_is_renewed_once_the_load_is_known_again(self) -> None:
        told = ScalingStatus(window="300s", why="Prometheus is gone")
        look = replace(LOOK, load=load(*([1.0] * 12 + [9.0] * 4) * 15), told=told)
        assert looked(look).why == "flatness 0.00 over 20m, bursty"


class TestBehavior:
    def test_usual_rules(self) -> None:
        found = behavior_of(scaling(), 120, one_by_one=False)
        assert found.up == Behavior().up
        assert found.down == replace(Behavior().down, window_s=120)

    def test_one_by_one(self) -> None:
        assert behavior_of(scaling(), 60, one_by_one=True).down == Rules(
            60, (Policy(PolicyKind.PODS, 1, 15),)
        )

    def test_the_authors(self) -> None:
        rules = {
            "stabilizationWindowSeconds": 45,
            "policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}],
            "selectPolicy": "Min",
            "tolerance": "200m",
        }
        assert behavior_of(scaling(scaleUp=rules), 60, one_by_one=True).up == Rules(
            45, (Policy(PolicyKind.PERCENT, 50, 60),), Select.MIN, 0.2
        )

    def test_parts_of_the_authors(self) -> None:
        found = behavior_of(scaling(scaleUp={"selectPolicy": "Disabled"}), 60, one_by_one=True)
        assert found.up == replace(Behavior().up, select=Select.DISABLED)
