import pytest

from zerolayer_worker.sampling.provider import SamplingControls


@pytest.mark.parametrize(
    ("controls", "filtered"),
    [
        ({}, False),
        ({"temperature": 1.0}, False),
        ({"top_k": 5, "top_p": 0.5, "min_p": 0.1}, False),
        ({"temperature": 1.0, "top_k": 5}, True),
        ({"temperature": 1.0, "top_p": 0.5}, True),
        ({"temperature": 1.0, "min_p": 0.1}, True),
    ],
)
def test_filters_count_only_where_there_is_a_draw(controls: dict[str, float], filtered: bool) -> None:
    assert SamplingControls(**controls).filtered is filtered
