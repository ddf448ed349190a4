"""Types of arguments; argparse names the argument and shows the message."""

import argparse
import math


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


def count_of(text: str) -> int:
    """A whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value
