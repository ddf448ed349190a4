"""The three intents a request can name instead of sampling parameters."""

from enum import StrEnum


class Intent(StrEnum):
    """What kind of answer a request wants; the router turns it into sampling controls."""

    DETERMINISTIC = "deterministic"
    BALANCED = "balanced"
    CREATIVE = "creative"
