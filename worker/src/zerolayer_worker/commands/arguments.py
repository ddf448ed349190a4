"""Types of arguments; argparse names the argument and shows the message."""

import argparse
import math
from typing import Final

MOST_THREADS: Final = 1024
"""No machine of today has more CPUs; torch ends with a segmentation fault long before a million."""


def positive(text: str) -> float:
    """A finite number above 0."""
    value = weight(text)
    if value == 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def weight(text: str) -> float:
    """A finite number of at least 0."""
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text} is no number of at least 0")
    return value


def similarity(text: str) -> float:
    """A cosine: a number from -1 to 1."""
    value = float(text)
    if not -1 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between -1 and 1")
    return value


def count_of(text: str) -> int:
    """A whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def threads_of(text: str) -> int:
    """A number of compute threads."""
    value = count_of(text)
    if value > MOST_THREADS:
        raise argparse.ArgumentTypeError(f"{text} is more than {MOST_THREADS}")
    return value
