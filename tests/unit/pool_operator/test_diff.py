"""When a child counts as different from what is applied."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.apply.diff import covers, differs, stamped

BODY: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"name": "a", "labels": {"x": "y"}},
    "spec": {
        "selector": {"a": "b"},
        "template": {"containers": [{"name": "c", "env": [{"name": "E", "value": ""}], "args": ["a", "b"]}]},
    },
}


def live() -> dict[str, Any]:
    """The body as an API server would have it: more fields, empty ones left out."""
    made = copy.deepcopy(stamped(BODY))
    made["metadata"]["uid"] = "u"
    made["spec"]["replicas"] = 3
    container = made["spec"]["template"]["containers"][0]
    del container["env"][0]["value"]
    container["image"] = "i"
    return made


def test_absent_child_differs() -> None:
    assert differs(None, stamped(BODY))


def test_child_with_more_than_is_applied_does_not() -> None:
    assert not differs(live(), stamped(BODY))


def test_anything_added_or_given_up_does() -> None:
    for change in ({"spec": {}}, {"extra": 1}):
        assert differs(live(), stamped({**BODY, **change}))


@pytest.mark.parametrize(
    "edit",
    [
        lambda made: made["metadata"]["labels"].update(x="z"),
        lambda made: made["metadata"]["labels"].clear(),
        lambda made: made["spec"]["template"]["containers"].clear(),
        lambda made: made["spec"]["template"]["containers"][0]["args"].append("c"),
        lambda made: made["spec"]["template"]["containers"][0]["args"].reverse(),
        lambda made: made["spec"].update(selector={}),
        lambda made: made["metadata"]["annotations"].clear(),
    ],
)
def test_edit_of_an_applied_field_does(edit) -> None:
    made = live()
    edit(made)

    assert differs(made, stamped(BODY))


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ("1", "1e999999k", False),
        ("1000m", "1", True),
        ("1024Mi", "1Gi", True),
        (2, "2", True),
        ("2.50", "2500m", True),
        ("1G", "1Gi", False),
        ("500m", "1", False),
        (True, 1, True),
        ("abc", "abd", False),
    ],
)
def test_quantities_are_compared_by_value(wanted, found, same) -> None:
    assert covers({"cpu": found}, {"cpu": wanted}) == same


@pytest.mark.parametrize(
    ("field", "wanted", "found", "same"),
    [
        ("cpu", "0.0005", "1m", True),
        ("memory", "1.23456Gi", "1325598706238m", True),
        ("memory", "1.5m", "2m", True),
        ("nvidia.com/gpu", "1.0", "1", True),
        ("cpu", "0.0005", "2m", False),
        ("value", "0.0005", "1m", False),
        ("cpu", "1e999998", "1", False),
    ],
)
def test_what_containers_ask_for_is_compared_as_the_api_server_rounds_it(field, wanted, found, same) -> None:
    assert covers({field: found}, {field: wanted}) == same


@pytest.mark.parametrize(
    ("field", "wanted", "found", "same"),
    [
        ("containers", [{"name": "a"}], [{"name": "sidecar"}, {"name": "a", "image": "i"}], True),
        ("volumeMounts", [{"mountPath": "/a"}], [{"mountPath": "/b"}], False),
        ("ownerReferences", [{"uid": "1"}], [{"uid": "2"}, {"uid": "1"}], True),
        ("tolerations", [{"key": "a"}], [{"key": "a"}, {"key": "b"}], False),
        ("egress", [{"ports": [{"port": 1}]}], [{"ports": [{"port": 1}, {"port": 2}]}], False),
        ("egress", [], None, True),
    ],
)
def test_only_lists_that_others_may_add_to_may_hold_more(field, wanted, found, same) -> None:
    assert covers({field: found}, {field: wanted}) == same


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(json_values)
def test_everything_covers_itself(value: Any) -> None:
    assert covers(value, value)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_stamp_depends_on_nothing_but_the_configuration(spec: dict[str, Any]) -> None:
    body = {"metadata": {"name": "a"}, "spec": spec}
    shuffled = {"spec": dict(reversed(spec.items())), "metadata": {"name": "a"}}

    assert stamped(body) == stamped(shuffled)
