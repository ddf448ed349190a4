"""The HorizontalPodAutoscaler's algorithm: cases of the controller's own tests, and what always holds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.decide import hpa_replay
from zerolayer_operator.decide.hpa_replay import (
    Behavior,
    Bounds,
    Policy,
    PolicyKind,
    Replay,
    Rules,
    Select,
    per_pod_proposal,
)

NOW = 10_000.0
WIDE = Bounds(1, 2000)
FREE = (Policy(PolicyKind.PERCENT, 100_000, 1),)
AT_ONCE = Behavior(Rules(0, FREE), Rules(0, FREE))
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1


def samples(*pairs: tuple[int, float]) -> list:
    """Numbers with their ages in seconds."""
    return [hpa_replay._Sample(value, NOW - age) for value, age in pairs]


def rules(pods: int = 0, percent: int = 0, period_s: int = 60, select: Select = Select.MAX) -> Rules:
    policies = [(PolicyKind.PODS, pods), (PolicyKind.PERCENT, percent)]
    return Rules(0, tuple(Policy(kind, value, period_s) for kind, value in policies if value), select)


@pytest.mark.parametrize(
    ("recommended", "replicas", "proposal", "up_s", "down_s", "size", "kept"),
    [
        pytest.param([(1, 0)], 100, 5, 0, 0, 5, [1, 5], id="no windows, down"),
        pytest.param([(4, 120), (5, 60)], 100, 3, 0, 180, 5, [4, 5, 3], id="down, to the highest"),
        pytest.param([(4, 120), (5, 60)], 1, 7, 300, 0, 4, [4, 5, 7], id="up, to the lowest"),
        pytest.param([(1, 120), (2, 60)], 100, 3, 300, 0, 3, [1, 2, 3], id="down, window up only"),
        pytest.param([(4, 120), (5, 60)], 1, 3, 0, 300, 3, [4, 5, 3], id="up, window down only"),
        pytest.param([(10, 600), (9, 540)], 100, 3, 0, 0, 3, [10, 3], id="the last outdated one gives way"),
        pytest.param(
            [(10, 600), (4, 60), (5, 120), (9, 540)], 100, 3, 0, 180, 5, [10, 4, 5, 3], id="only it does"
        ),
        pytest.param(
            [(10, 6000), (6, 60), (5, 120), (9, 180)], 1, 100, 300, 0, 5, [100, 6, 5, 9],
            id="what one window still needs stays",
        ),
        pytest.param([(2, 6000), (3, 180)], 2, 1, 300, 300, 2, [1, 3], id="two windows, down held"),
        pytest.param([(2, 6000), (1, 180)], 2, 3, 300, 300, 2, [3, 1], id="two windows, up held"),
    ],
)  # fmt: skip
def test_windows(recommended, replicas, proposal, up_s, down_s, size, kept) -> None:
    replay = Replay(_recommendations=samples(*recommended))
    behavior = Behavior(Rules(up_s, FREE), Rules(down_s, FREE))

    assert replay.sync(NOW, replicas, proposal, WIDE, behavior) == size
    assert [sample.value for sample in replay._recommendations] == kept


RECENT = [(1, 100), (5, 60), (9, 20)]


@pytest.mark.parametrize(
    ("replicas", "proposal", "up", "added", "removed", "size"),
    [
        pytest.param(10, 50, Behavior().up, [], [], 20, id="defaults: double"),
        pytest.param(1, 50, Behavior().up, [], [], 5, id="defaults: or four"),
        pytest.param(3, 1000, rules(pods=1), [], [], 4, id="pods"),
        pytest.param(10, 50, rules(percent=200), [], [], 30, id="percent"),
        pytest.param(10, 500, rules(100, 100), [], [], 110, id="the most of both"),
        pytest.param(10, 500, rules(100, 100, select=Select.MIN), [], [], 20, id="the least of both"),
        pytest.param(10, 500, rules(100, select=Select.DISABLED), [], [], 10, id="neither"),
        pytest.param(3, 9, rules(percent=10), [], [], 4, id="percent, rounded up"),
        pytest.param(100, 500, rules(150, period_s=120), RECENT, [], 235, id="pods, after growth"),
        pytest.param(100, 500, rules(0, 200, 120), RECENT, [], 255, id="percent, after growth"),
        pytest.param(100, 500, rules(5, period_s=120), RECENT, [], 100, id="never down for it"),
        pytest.param(6, 24, rules(0, 300, 300), [(4, 60)], [(2, 60)], 16, id="after growth and shrinking"),
        pytest.param(100, 500, rules(9, period_s=20), RECENT, [], 109, id="not at the period's very edge"),
        pytest.param(9, 50, rules(INT32_MAX), [], [], 9, id="a huge number of pods allows none"),
        pytest.param(200, 900, rules(0, INT32_MAX), [], [], 200, id="a huge percentage allows none"),
    ],
)
def test_policies_up(replicas, proposal, up, added, removed, size) -> None:
    replay = Replay(_added=samples(*added), _removed=samples(*removed))
    assert replay.sync(NOW, replicas, proposal, WIDE, Behavior(up, AT_ONCE.down)) == size


@pytest.mark.parametrize(
    ("replicas", "proposal", "down", "added", "removed", "size"),
    [
        pytest.param(1000, 3, rules(20), [], [], 980, id="pods"),
        pytest.param(10, 4, rules(0, 50), [], [], 5, id="percent"),
        pytest.param(100, 2, rules(20, 1), [], [], 80, id="the most of both"),
        pytest.param(100, 2, rules(20, 1, select=Select.MIN), [], [], 99, id="the least of both"),
        pytest.param(100, 2, rules(20, select=Select.DISABLED), [], [], 100, id="neither"),
        pytest.param(7, 1, rules(0, 50), [], [], 3, id="percent, what stays rounded down"),
        pytest.param(100, 2, rules(5, period_s=120), [], RECENT, 100, id="never up for it"),
        pytest.param(100, 0, rules(0, 50, 120), [], [(2, 100), (4, 60), (6, 20)], 56, id="after shrinking"),
        pytest.param(10, 1, rules(0, 50, 180), [(2, 60)], [(4, 60)], 6, id="after growth and shrinking"),
        pytest.param(10, 5, rules(0, 1000, 120), [], [(30, 60)], 5, id="more than there is"),
    ],
)
def test_policies_down(replicas, proposal, down, added, removed, size) -> None:
    replay = Replay(_added=samples(*added), _removed=samples(*removed))
    assert replay.sync(NOW, replicas, proposal, WIDE, Behavior(AT_ONCE.up, down)) == size


@pytest.mark.parametrize(
    ("replicas", "proposal", "size"),
    [
        pytest.param(5, 7, 7, id="within"),
        pytest.param(3, 1, 2, id="not below the minimum"),
        pytest.param(5, 1000, 10, id="not above the maximum"),
        pytest.param(20, 15, 10, id="from above to the maximum"),
        pytest.param(1, 7, 2, id="from below to the minimum, however much is wanted"),
        pytest.param(0, 7, 0, id="off by hand"),
        pytest.param(4, None, 4, id="no metric"),
        pytest.param(20, None, 10, id="from above without a metric"),
    ],
)
@pytest.mark.parametrize("behavior", [AT_ONCE, None], ids=["behavior", "none"])
def test_bounds(replicas, proposal, size, behavior) -> None:
    replay = Replay(_recommendations=samples((1, 1000)))
    assert replay.sync(NOW, replicas, proposal, Bounds(2, 10), behavior) == size


def test_changes_by_bounds_count_for_the_policies() -> None:
    replay, behavior = Replay(), Behavior(rules(pods=3), rules(pods=3))

    assert replay.sync(NOW, 4, 4, Bounds(6, 20), behavior) == 6
    assert replay.sync(NOW + 1, 6, 20, Bounds(1, 20), behavior) == 7


def test_a_change_once_outdated_gives_way_though_a_longer_period_counts_it() -> None:
    short, long = (
        Behavior(rules(3, period_s=10), AT_ONCE.down),
        Behavior(rules(9, period_s=600), AT_ONCE.down),
    )
    replay = Replay(_added=samples((5, 40), (6, 30)))

    assert replay.sync(NOW, 20, 21, WIDE, short) == 21  # the first is found outdated, the second replaced
    assert replay.sync(NOW + 1, 21, 22, WIDE, long) == 22  # 6 + 1 of 9 are used up; the first is replaced
    assert replay.sync(NOW + 2, 22, 99, WIDE, long) == 29


def test_without_behavior_the_highest_of_the_window_is_taken_up_too() -> None:
    replay = Replay(window_s=60)
    sizes = [
        replay.sync(NOW + at, replicas, proposal, Bounds(2, 20), None)
        for at, replicas, proposal in [
            (0, 8, 12),
            (30, 1, 3),
            (40, 2, 3),
            (59, 4, 3),
            (61, 8, 3),
            (101, 8, 3),
        ]
    ]
    # A hand made it 1, which the bounds put right; then it goes to the first look's 12, twofold each time.
    assert sizes == [12, 2, 4, 8, 3, 3]


@pytest.mark.parametrize(
    ("usage", "target", "replicas", "proposal"),
    [
        pytest.param(11_000, 1000, 10, 10, id="just within, above"),
        pytest.param(11_001, 1000, 10, 12, id="just beyond, above"),
        pytest.param(9000, 1000, 10, 10, id="just within, below"),
        pytest.param(8999, 1000, 10, 9, id="just beyond, below"),
        pytest.param(0, 1000, 10, 0, id="no load"),
        pytest.param(2500, 1000, 0, 3, id="no pods yet"),
        pytest.param(0, 1000, 0, 0, id="neither"),
        pytest.param(INT32_MAX * 2000, 1000, 5, INT32_MAX, id="more than there can be"),
        pytest.param(INT64_MAX * 2, INT64_MAX, 5, 1, id="a sum beyond 64 bits"),
        pytest.param(-1, 10**10, 5, 922_337_204, id="negative, which counts as beyond"),
    ],
)
def test_proposal(usage, target, replicas, proposal) -> None:
    assert per_pod_proposal(usage, target, replicas) == proposal


def test_each_direction_has_its_tolerance() -> None:
    behavior = Behavior(replace(AT_ONCE.up, tolerance=0.0), replace(AT_ONCE.down, tolerance=0.5))

    assert per_pod_proposal(10_001, 1000, 10, behavior) == 11
    assert per_pod_proposal(5000, 1000, 10, behavior) == 10


policies = st.builds(Policy, st.sampled_from(PolicyKind), st.integers(1, 300), st.integers(1, 60))
any_rules = st.builds(
    Rules,
    st.integers(0, 120),
    st.lists(policies, min_size=1, max_size=3).map(tuple),
    st.sampled_from(Select),
)
behaviors = st.none() | st.builds(Behavior, any_rules, any_rules)
bounds = st.tuples(st.integers(1, 30), st.integers(0, 30)).map(lambda pair: Bounds(pair[0], sum(pair)))
proposals = st.none() | st.integers(0, 80)
hands = st.none() | st.integers(0, 80)
steps = st.lists(st.tuples(st.floats(0.1, 60), hands, proposals, bounds, behaviors), max_size=40)


@given(st.integers(0, 80), steps)
def test_always(replicas: int, life) -> None:
    replay, now = Replay(), NOW
    for passed, by_hand, proposal, limits, behavior in life:
        now += passed
        before = replicas if by_hand is None else by_hand
        replicas = replay.sync(now, before, proposal, limits, behavior)

        if before == 0:
            assert replicas == 0
        else:
            assert limits.minimum <= replicas <= limits.maximum
        if proposal is None and limits.minimum <= before <= limits.maximum:
            assert replicas == before


@given(behaviors, st.integers(1, 50), st.lists(st.floats(0.1, 60), max_size=40))
def test_at_target_nothing_happens(behavior, size: int, pauses: list[float]) -> None:
    replay, now = Replay(), NOW
    for pause in pauses:
        now += pause
        proposal = per_pod_proposal(size * 1000, 1000, size, behavior)
        assert replay.sync(now, size, proposal, Bounds(1, 50), behavior) == size
