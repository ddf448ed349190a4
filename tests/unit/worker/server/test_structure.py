"""Counting a JSON text's structure without decoding it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_worker.server.structure import exceeds

# Texts of the characters that could be mistaken for structure, or hide it.
texts = st.text(st.sampled_from('"\\{}[]:,\n aé'), max_size=12)
values = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def structure(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(structure, value.values()))
    return 1 + sum(map(structure, value)) if isinstance(value, list) else 0


@given(values, st.booleans(), st.integers(1, 40))
def test_counts_objects_lists_and_fields_outside_of_strings(value: Any, ascii_only: bool, chunk: int) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    most = structure(value)
    assert not exceeds(text, most, chunk=chunk)
    assert exceeds(text, most - 1, chunk=chunk)


@pytest.mark.parametrize("text", [b"", b'"', b"\\", b'"\\', b'"\\"', b"}]", b"\xff\x00"])
def test_what_is_no_json_is_none_of_its_business(text: bytes) -> None:
    assert not exceeds(text, 0)
