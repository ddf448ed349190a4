"""Errors that one layer raises and another, which may not import it, tells the client or the user."""

from enum import StrEnum


class RefusalError(ValueError):
    """What was configured can't be used. `message` names what is wrong with it and the remedy."""

    def __init__(self, reason: StrEnum, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class TextTooLongError(ValueError):
    """A text that can't fit into the model's context however it is tokenised."""
