"""What both protocols translate a conversation into: what chat templates expect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ChatMessage = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages (`role`, `content` and the tool fields) and tools in chat-template form."""

    messages: Sequence[ChatMessage]
    tools: Sequence[Mapping[str, object]] = ()
