"""What both protocols translate a conversation into: what chat templates expect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

ChatMessage = Mapping[str, object]

OPENING_CHARS: Final = 4096
"""Characters of a message that conversations are told apart by."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages (`role`, `content` and the tool fields) and tools in chat-template form."""

    messages: Sequence[ChatMessage]
    tools: Sequence[Mapping[str, object]] = ()

    def opening(self) -> int:
        """A hash of the messages up to the user's first, by which a conversation is known again.

        It holds in this process alone, as Python's hashes of texts do.
        """
        first = next((i for i, message in enumerate(self.messages) if message["role"] == "user"), -1)
        return hash(tuple(str(message["content"])[:OPENING_CHARS] for message in self.messages[: first + 1]))

    @property
    def continued(self) -> bool:
        """Whether an answer was given already."""
        return any(message["role"] == "assistant" for message in self.messages)
