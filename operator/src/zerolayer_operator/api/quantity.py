"""Quantities as Kubernetes writes them: `1500m`, `2Gi`, `1e3`."""

from decimal import Decimal
from typing import Final

_SUFFIXES: Final = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9),
    "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30),
    "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip


def quantity(text: str) -> Decimal:
    """The number that a quantity stands for.

    Raises:
        ArithmeticError: It is none, or too large to be told.
    """
    suffix = next((end for end in sorted(_SUFFIXES, key=len, reverse=True) if text.endswith(end)), "")
    return Decimal(text.removesuffix(suffix)) * _SUFFIXES.get(suffix, Decimal(1))
