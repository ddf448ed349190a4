"""Types of arguments refuse what can't be meant, and say why."""

import argparse
from collections.abc import Callable

import pytest

from zerolayer_worker.commands.arguments import (
    MOST_THREADS,
    count_of,
    positive,
    similarity,
    threads_of,
    weight,
)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (positive, ["1", "0.5"], ["0", "-1", "nan", "inf"]),
        (weight, ["0", "2"], ["-1", "nan", "inf"]),
        (similarity, ["-1", "0", "0.98", "1"], ["-1.1", "7", "nan", "inf"]),
        (count_of, ["1", "7"], ["0", "-1"]),
        (threads_of, ["1", str(MOST_THREADS)], ["0", str(MOST_THREADS + 1)]),
    ],
    ids=["positive", "weight", "similarity", "count", "threads"],
)
def test_what_cannot_be_meant_is_refused(
    kind: Callable[[str], float], good: list[str], bad: list[str]
) -> None:
    assert [kind(text) for text in good] == [float(text) for text in good]
    for text in bad:
        with pytest.raises(argparse.ArgumentTypeError, match=text):
            kind(text)
