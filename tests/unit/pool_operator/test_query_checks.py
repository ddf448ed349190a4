"""Users' own checks: variables, thresholds, and what is no value."""

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.api.update import QueryCheck
from zerolayer_operator.decide.evidence import QueryResult
from zerolayer_operator.decide.query_checks import Variables, asked, compared, substituted
from zerolayer_operator.observe.answered import QueryAnswer

NAMES = Variables(blue="aaaa0000bb", green="cccc1111dd", pool="my-pool", namespace="team-1")


def check(**fields: Any) -> QueryCheck:
    values = {"name": "mine", "query": "up", "threshold": "0.01", **fields}
    return QueryCheck.model_validate_json(json.dumps(values))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("up", "up"),
        ('up{r="$green"} / up{r="$blue"}', 'up{r="cccc1111dd"} / up{r="aaaa0000bb"}'),
        ('up{p=~"$pool-.*",ns="$namespace"}', 'up{p=~"my-pool-.*",ns="team-1"}'),
        ('up{r=~"$green|$blue"}', 'up{r=~"cccc1111dd|aaaa0000bb"}'),
        ('up{a=~"x$",b="$$green"}', 'up{a=~"x$",b="$cccc1111dd"}'),
        ('up{r="$greenish",x="$gren",y="${green}",z="$Green"}',) * 2,
        ("$green", "cccc1111dd"),
    ],
)
def test_variables(query: str, expected: str) -> None:
    assert substituted(query, NAMES) == expected
    assert asked([check(name="a", query=query)], NAMES) == {"a": expected}


REVISIONS = st.text("0123456789abcdef", min_size=10, max_size=10)
LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)
TEXTS = st.lists(
    st.sampled_from(
        ["$green", "$blue", "$pool", "$namespace", '"', "$", "{", "}", "\\", " ", "x", "\n", "$x"]
    )
).map("".join)


@given(query=TEXTS, blue=REVISIONS, green=REVISIONS, pool=LABELS, namespace=LABELS)
def test_nothing_but_the_variables_changes(
    query: str, blue: str, green: str, pool: str, namespace: str
) -> None:
    """What stands around them is as it was, and what they stand for ends no string and begins no pattern."""
    variables = Variables(blue, green, pool, namespace)
    pieces = re.split(r"(\$(?:blue|green|pool|namespace)\b)", query)
    values = {"$blue": blue, "$green": green, "$pool": pool, "$namespace": namespace}
    replaced = substituted(query, variables)
    assert replaced == "".join(values.get(piece, piece) for piece in pieces)
    assert all(replaced.count(sign) == query.count(sign) for sign in '"\\{}\n')


@pytest.mark.parametrize("value", ['a"b', "", "a b", "A", "-a", "a-", "a\n", "$green", ".*"])
def test_what_is_no_name_stands_for_nothing(value: str) -> None:
    with pytest.raises(ValueError, match="is no name"):
        Variables("a", "b", "c", value)


@pytest.mark.parametrize(
    ("comparison", "threshold", "value", "satisfied"),
    [
        ("AtMost", "0.01", 0.01, True),
        ("AtMost", "0.01", 0.010001, False),
        ("AtMost", "-1", -1.5, True),
        ("AtMost", "5", math.inf, False),
        ("AtMost", "5", -math.inf, True),
        ("AtLeast", "0.95", 0.95, True),
        ("AtLeast", "0.95", 0.9499, False),
        ("AtLeast", "0", math.inf, True),
        ("AtLeast", "999999999999999.999999999999999", 1.0, False),
        ("AtMost", "0.01", math.nan, None),
        ("AtLeast", "0.01", math.nan, None),
        ("AtMost", "0.01", None, None),
    ],
)
def test_thresholds(comparison: str, threshold: str, value: float | None, satisfied: bool | None) -> None:
    wanted = check(comparison=comparison, threshold=threshold)
    (result,) = compared([wanted], {"mine": QueryAnswer(value, "" if value is not None else "no series")})
    assert (result.name, result.satisfied) == ("mine", satisfied)


def test_a_result_says_what_it_rests_on() -> None:
    checks = [check(name=name) for name in ("good", "bad", "none", "odd", "unasked")]
    answers = {
        "good": QueryAnswer(0.00512345678),
        "bad": QueryAnswer(0.5),
        "none": QueryAnswer(unknown="Prometheus at http://p has no series for it"),
        "odd": QueryAnswer(math.nan),
    }
    assert list(compared(checks, answers)) == [
        QueryResult("good", True, "0.00512346, wanted is at most 0.01"),
        QueryResult("bad", False, "0.5, wanted is at most 0.01"),
        QueryResult("none", None, "Prometheus at http://p has no series for it"),
        QueryResult("odd", None, "its value is not a number (0/0); wanted is at most 0.01"),
        QueryResult("unasked", None, "not asked yet"),
    ]
