"""What a window would have done lately."""

from zerolayer_operator.decide.hpa_replay import Behavior, Bounds
from zerolayer_operator.decide.rehearsal import Rehearsal, Stage, compare, rehearse


def stage(*load: float) -> Stage:
    return Stage(load, 8, 5.6, Bounds(1, 40), Behavior(), cold_start_s=60)


def test_a_flat_load_costs_the_same_under_every_window() -> None:
    flat = stage(*[56.0] * 80)

    assert rehearse(flat, 60) == rehearse(flat, 300) == Rehearsal(10 * 80 * 15, 0)
    assert compare(flat, 300, 240) == (
        "300s → 240s, a replay of the last 20m saves 0.0 % replica-time, 0 more regrets"
    )


def test_a_step_down_is_followed_by_the_window_and_not_beyond_the_hold() -> None:
    step = stage(*[56.0] * 20, *[44.8] * 40)

    # From ten to the hold of nine: after 300 s, or 60, and the sync that it takes.
    assert rehearse(step, 60).replica_s - rehearse(step, 300).replica_s == -(300 - 60) * 1
    assert "saves 2.8 % replica-time" in compare(step, 300, 60)
    assert "costs 2.8 % replica-time" in compare(step, 60, 300)


def test_growing_soon_after_shrinking_is_a_regret() -> None:
    saw = stage(*[56.0] * 60, 44.8, 56.0, 44.8, 56.0)

    assert (rehearse(saw, 0).regrets, rehearse(saw, 300).regrets) == (2, 0)
    assert compare(saw, 300, 0).endswith("2 more regrets")


def test_nothing_comes_of_no_load() -> None:
    assert rehearse(stage(), 60) == Rehearsal(0, 0)
    assert "saves 0.0 %" in compare(stage(), 300, 240)
