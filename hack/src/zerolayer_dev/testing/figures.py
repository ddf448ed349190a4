"""Figures a test measured, as text."""

from collections.abc import Mapping
from typing import Any


def figure_text(row: Mapping[str, Any]) -> str:
    """Returns figures on one line, floats at four significant digits."""
    return ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
    )
