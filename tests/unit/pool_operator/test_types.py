"""Durations and paths of the API."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.api.types import GO_DURATION, SHORT_GO_DURATION, exact_seconds, seconds, stays_inside


@pytest.mark.parametrize(
    ("text", "expected"),
    [("300s", 300), ("5m", 300), ("1h", 3600), ("1h30m5s", 5405), ("0s", 0), ("500ms", 1), ("1s1ms", 2)],
)
def test_duration_in_seconds(text: str, expected: int) -> None:
    assert seconds(text) == expected


@given(st.integers(0, 999), st.integers(0, 999), st.integers(0, 999))
def test_every_part_counts(hours: int, minutes: int, rest: int) -> None:
    text = f"{hours}h{minutes}m{rest}s"

    assert re.fullmatch(GO_DURATION, text)
    assert seconds(text) == hours * 3600 + minutes * 60 + rest


@pytest.mark.parametrize("text", ["300", "5 m", "1.5h", "-1s", "1s1m", "1d", "500ms"])
def test_other_forms_are_refused(text: str) -> None:
    assert not re.fullmatch(GO_DURATION, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5ms", 0.005), ("500ms", 0.5), ("1s", 1), ("1s500ms", 1.5), ("1m30s", 90), ("5m", 300)],
)
def test_short_duration_to_the_millisecond(text: str, expected: float) -> None:
    assert re.fullmatch(SHORT_GO_DURATION, text)
    assert exact_seconds(text) == expected


@pytest.mark.parametrize("text", ["1", "1h", "0.5s", "1s1m", "5us", "-1s", "1ms1s"])
def test_other_short_forms_are_refused(text: str) -> None:
    assert not re.fullmatch(SHORT_GO_DURATION, text)


@pytest.mark.parametrize(
    ("path", "inside"), [("a/b", True), ("a..b", True), ("..", False), ("a/../b", False), ("/x/..", False)]
)
def test_path_may_not_leave_its_folder(path: str, inside: bool) -> None:
    assert stays_inside(path) == inside
