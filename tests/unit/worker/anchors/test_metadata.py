"""Metadata comes back from its texts, and its name and version are safe wherever they are shown."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.tiny_anchor import ANY_DIGEST, tiny_metadata
from zerolayer_worker.anchors.metadata import MAX_FIGURES, BundleMetadata
from zerolayer_worker.common.anchor import BundleError, BundleReason

LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
names = st.from_regex(LABEL_VALUE, fullmatch=True)
figures = st.dictionaries(
    st.from_regex(r"[a-z0-9_]{1,64}", fullmatch=True),
    st.floats(allow_nan=False, allow_infinity=False),
    max_size=MAX_FIGURES,
)


@given(
    name=names,
    version=names,
    evaluation=figures,
    created=st.datetimes(timezones=st.just(UTC)),
    training=st.sampled_from([None, ANY_DIGEST]),
)
def test_comes_back(
    name: str, version: str, evaluation: dict[str, float], created: datetime, training: str | None
) -> None:
    metadata = tiny_metadata(
        name=name, version=version, evaluation=evaluation, created=created, training_data_digest=training
    )
    texts = metadata.texts()
    assert all(isinstance(text, str) for text in texts.values())
    assert BundleMetadata.from_texts(texts) == metadata


@given(text=st.text(max_size=80))
def test_a_version_is_safe_as_label_and_header(text: str) -> None:
    texts = tiny_metadata().texts() | {"version": text}
    if LABEL_VALUE.fullmatch(text):
        assert BundleMetadata.from_texts(texts).version == text
    else:
        with pytest.raises(BundleError, match="version"):
            BundleMetadata.from_texts(texts)


@pytest.mark.parametrize(
    "change",
    [
        {"base_model_digest": "sha256:abc"},
        {"base_model_digest": "0" * 64},
        {"created": "yesterday"},
        {"created": "2026-11-30T12:00:00"},
        {"dtype": "int8"},
        {"training_data_digest": ""},
        {"evaluation": "[1]"},
        {"evaluation": "{"},
        {"evaluation": '{"hit_rate": NaN}'},
        {"evaluation": '{"hit_rate": "x"}'},
        {"evaluation": '{"Hit rate": 1}'},
        {"evaluation": "{" + ",".join(f'"f{i}": 1' for i in range(MAX_FIGURES + 1)) + "}"},
        {"evaluation": "[" * 100_000},
        {"surprise": "x"},
        {"name": None},
        {"base_model_digest": None},
    ],
)
def test_what_is_refused(change: dict[str, str | None]) -> None:
    texts = tiny_metadata().texts() | change
    with pytest.raises(BundleError) as caught:
        BundleMetadata.from_texts({key: text for key, text in texts.items() if text is not None})
    assert caught.value.reason is BundleReason.UNREADABLE
    assert next(iter(change)) in caught.value.message
    assert len(caught.value.message) < 400
