"""What is measured, in pieces that each take minutes at most; a run goes on where the last one ended."""

from typing import Final

VOCABULARIES: Final = (49_152, 128_256, 262_144)
# The 30 000 repeats of which 29 956 have to be clean for 99.99 %, over so many starts of the engine.
RESTARTS: Final = 30
REPEATS_EACH: Final = 1002
OPEN_PROMPTS: Final = 10
WARM_UP_ROUNDS: Final = 3


def _warm_up_turns() -> tuple[str, ...]:
    """Either goes first in every other round."""
    ways = ("without", "with")
    return tuple(
        f"{turn} {way}" for turn in range(1, WARM_UP_ROUNDS + 1) for way in (ways if turn % 2 else ways[::-1])
    )


PIECES: Final[dict[str, tuple[str, ...]]] = {
    "router-size": ("file",),
    "memory": tuple(str(vocab) for vocab in VOCABULARIES),
    "sampling-time": tuple(str(vocab) for vocab in VOCABULARIES[:2]),
    "served": ("closed loop",),
    "utilisation": ("open loop",),
    "switch": ("conversation",),
    "warm-up": _warm_up_turns(),
    "creative": tuple(f"prompts {number} and {number + 1}" for number in range(1, OPEN_PROMPTS, 2)),
    "repeats": tuple(f"start {number}" for number in range(1, RESTARTS + 1)),
}
"""The pieces of each measurement, by its name."""
GROWING: Final = frozenset({"repeats"})
"""Those of which some pieces say less than all, and nothing else."""
