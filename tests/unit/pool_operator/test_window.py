"""How the scale-down window and the hold follow the load."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.decide.window import (
    DWELL_S,
    MEMORY_S,
    SAMPLE_S,
    STEP_S,
    Evidence,
    Limits,
    Setting,
    flatness,
    held_replicas,
    tune,
)

LIMITS = Limits(min_replicas=1, max_replicas=40, min_window_s=60, max_window_s=300)
WIDEST = Setting(window_s=300, floor=1, replicas=1, narrowed_at=0.0)
NARROWEST = replace(WIDEST, window_s=60)
SLOTS = 8
FLAT = (40.0,) * (MEMORY_S // SAMPLE_S)
BURSTY = (40.0, 40.0, 40.0, 200.0) * (MEMORY_S // SAMPLE_S // 4)
LONG_AFTER = 10_000.0

loads = st.lists(st.floats(0, 1e6), max_size=MEMORY_S // SAMPLE_S + 5)
limits = st.builds(
    lambda low, more, shortest, longer: Limits(low, low + more, shortest, shortest + longer),
    st.integers(1, 100),
    st.integers(0, 100),
    st.integers(0, 3600),
    st.integers(0, 3600),
)


def evidence(load: Sequence[float] = FLAT, **changes) -> Evidence:
    return replace(Evidence(load, SLOTS, replicas=8, cold_start_s=0.0), **changes)


@pytest.mark.parametrize(
    ("found", "present", "limits", "window"),
    [
        pytest.param(evidence(), WIDEST, LIMITS, 240, id="a flat load narrows by one step"),
        pytest.param(evidence(), NARROWEST, LIMITS, 60, id="a flat load keeps the narrowest"),
        pytest.param(evidence(BURSTY), NARROWEST, LIMITS, 300, id="a burst widens at once"),
        pytest.param(evidence(FLAT[:11]), NARROWEST, LIMITS, 300, id="too few samples tell nothing"),
        pytest.param(evidence((0.0,) * 80), NARROWEST, LIMITS, 300, id="a pool at zero is not flat"),
        pytest.param(evidence(()), NARROWEST, LIMITS, 300, id="no sample"),
        pytest.param(evidence(unknown="no figures"), NARROWEST, LIMITS, 300, id="unknown widens at once"),
        pytest.param(evidence(updating=True), NARROWEST, LIMITS, 300, id="an update widens at once"),
        pytest.param(evidence(cold_start_s=340), NARROWEST, LIMITS, 115, id="a slow start needs longer"),
        pytest.param(evidence(cold_start_s=9000), NARROWEST, LIMITS, 300, id="a start beyond all windows"),
        pytest.param(
            evidence(), WIDEST, replace(LIMITS, max_window_s=120), 60, id="the author's maximum comes at once"
        ),
        pytest.param(
            evidence(), NARROWEST, replace(LIMITS, min_window_s=200), 200, id="the author's minimum, too"
        ),
        pytest.param(
            evidence(), WIDEST, Limits(1, 40, 300, 300), 300, id="one window is all that is allowed"
        ),
    ],
)
def test_window(found: Evidence, present: Setting, limits: Limits, window: int) -> None:
    assert tune(found, present, limits, LONG_AFTER).window_s == window


@pytest.mark.parametrize(
    ("found", "present", "reason"),
    [
        pytest.param(evidence(), NARROWEST, "flatness 1.00 over 20m", id="flat"),
        pytest.param(evidence(FLAT[:20]), NARROWEST, "flatness 1.00 over 5m", id="not known for long"),
        pytest.param(evidence(BURSTY), NARROWEST, "flatness 0.00 over 20m, bursty", id="bursty"),
        pytest.param(evidence((0.0,) * 80), NARROWEST, "no load for 20m", id="idle"),
        pytest.param(evidence(FLAT[:11]), NARROWEST, "the load is known for too short a time", id="new"),
        pytest.param(evidence(), replace(WIDEST, window_s=900), "maxWindow is 300s", id="author"),
        pytest.param(evidence(updating=True), NARROWEST, "an update is on its way", id="update"),
    ],
)
def test_reason(found: Evidence, present: Setting, reason: str) -> None:
    assert tune(found, present, LIMITS, LONG_AFTER).reason.startswith(reason)


def test_window_narrows_step_by_step_with_a_dwell_after_each() -> None:
    setting, changes = WIDEST, []
    for now in range(0, 20 * SAMPLE_S, SAMPLE_S):
        before = setting.window_s
        setting = tune(evidence(), setting, LIMITS, float(now))
        if setting.window_s != before:
            changes.append((now, setting.window_s))

    assert changes == [(DWELL_S * step, 300 - STEP_S * step) for step in (1, 2, 3, 4)]


def test_a_dwell_is_not_broken_by_the_author_s_minimum() -> None:
    setting = tune(evidence(), NARROWEST, replace(LIMITS, min_window_s=100), 1.0)
    assert setting.window_s == 100


@pytest.mark.parametrize(
    ("load", "flat", "replicas"),
    [
        ((), 1.0, 0),
        ((64.0,), 1.0, 10),  # 64 + 1.9 x 8 = 79.2 slots of 8
        ((64.0,), 0.0, 10),  # bursty: 64 + 1.1 x 8 = 72.8 slots of 8
        ((62.0,), 0.5, 10),  # 62 + (1.9 + 1.1) / 2 x 7.9 = 73.8
        ((62.0,), 0.0, 9),  # 62 + 1.1 x 7.9 = 70.7
        ((61.0, *(0.0,) * 14), 1.0, 10),  # 61 + 1.9 x 7.8 = 75.8
        ((61.0, *(0.0,) * 15), 1.0, 9),  # 61 + 1.3 x 7.8 = 71.2
        ((64.0, *(0.0,) * 43), 1.0, 10),
        ((64.0, *(0.0,) * 16), 1.0, 10),  # 4 to 11 minutes ago: 64 + 1.3 x 8
        ((64.0, 64.0, 64.0, 64.0, 64.0, *(0.0,) * 44), 1.0, 8),  # 11 to 40 minutes ago: as it was
        ((64.0, *(0.0,) * 44), 1.0, 4),  # then, of two minutes the mean
        ((64.0, 64.0, 64.0, 64.0, 64.0, *(0.0,) * 44), 0.5, 4),
        ((64.0, *(0.0,) * 44), 0.0, 0),
        ((1e6, 1e6, 1e6, 1e6, 1e6, *(0.0,) * 164), 1.0, 0),
        ((4.0,), 1.0, 1),
        ((6.4,), 1.0, 2),  # one replica would do for 80 % of a large pool's share
    ],
)
def test_held_replicas(load: Sequence[float], flat: float, replicas: int) -> None:
    assert held_replicas(load, SLOTS, flat) == replicas


@pytest.mark.parametrize(
    ("variation", "expected"), [(0.0, 1.0), (0.4, 1.0), (0.45, 0.75), (0.5, 0.5), (0.6, 0.0), (0.9, 0.0)]
)
def test_flatness(variation: float, expected: float) -> None:
    assert flatness([10 * (1 - variation), 10 * (1 + variation)] * 40) == pytest.approx(expected)


def test_without_figures_the_pool_stays_what_it_was_when_they_were_good() -> None:
    good = tune(evidence(replicas=12), WIDEST, LIMITS, 0.0)
    first = tune(evidence(unknown="Prometheus is away"), good, LIMITS, 15.0)
    second = tune(evidence((), unknown="Prometheus is away"), first, LIMITS, 30.0)

    assert first.floor == second.floor == 12
    assert (second.window_s, second.flatness, second.reason) == (300, None, "Prometheus is away")


@pytest.mark.parametrize(
    ("replicas", "floor", "expected"),
    [
        pytest.param(9, 3, 7, id="raised at once"),
        pytest.param(9, 8, 8, id="in nobody's way"),
        pytest.param(8, 8, 7, id="the pool stands on it"),
        pytest.param(7, 8, 7, id="the pool is below it"),
    ],
)
def test_the_floor_is_lowered_only_where_the_pool_stands_on_it(replicas, floor, expected) -> None:
    setting = tune(evidence(replicas=replicas), replace(WIDEST, floor=floor), LIMITS, 0.0)
    assert setting.floor == expected


@given(loads, limits, st.floats(0.1, 100), st.integers(0, 10**6), st.floats(0, 1e5), st.data())
def test_whatever_is_measured_the_author_s_limits_hold(
    load, limits, slots, replicas, cold_start, data
) -> None:
    present = Setting(
        data.draw(st.integers(0, 7200)), data.draw(st.integers(0, 300)), 3, data.draw(st.floats(0, 1e6))
    )
    found = Evidence(
        load, slots, replicas, cold_start, data.draw(st.sampled_from([None, "why"])), data.draw(st.booleans())
    )
    setting = tune(found, present, limits, data.draw(st.floats(present.narrowed_at, 1e7)))

    assert limits.min_window_s <= setting.window_s <= limits.max_window_s
    assert limits.min_replicas <= setting.floor <= limits.max_replicas
    assert setting.window_s >= min(present.window_s, limits.max_window_s) - STEP_S
    assert setting.reason


@given(loads, st.floats(0.0, 1.0), st.floats(1.0, 3.0))
def test_more_load_never_holds_fewer_replicas(load, flat, factor) -> None:
    assert held_replicas([value * factor for value in load], SLOTS, flat) >= held_replicas(load, SLOTS, flat)


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=MEMORY_S // SAMPLE_S))
def test_those_that_stay_carry_what_came_lately(load) -> None:
    """No scale-down that the hold allows leaves too few for the last 11 minutes; if flat, for the last 20."""
    seconds = 20 * 60 if flatness(load) == 1 else 11 * 60
    stay = held_replicas(load, SLOTS, flatness(load))

    assert stay * SLOTS + 1e-6 >= max(load[-seconds // SAMPLE_S :])


def test_a_clock_that_was_set_back_is_not_waited_for() -> None:
    before = replace(WIDEST, narrowed_at=LONG_AFTER)
    soon = tune(evidence(), before, LIMITS, 0.0)
    assert soon.window_s == WIDEST.window_s
    assert tune(evidence(), soon, LIMITS, DWELL_S).window_s == WIDEST.window_s - STEP_S
