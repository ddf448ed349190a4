"""Which tokens a sequence holds, kept up to date token by token for the penalties."""

from array import array
from collections.abc import Iterable


class TokenCounts:
    """The distinct tokens of a prompt and of the answer to it; one more token costs the same at any length.

    Attributes:
        ids: int64, each token once, in the order of its first appearance.
        counts: int32, how often the answer holds each; 0 where only the prompt does.
    """

    __slots__ = ("_places", "counts", "ids")

    def __init__(self, prompt_ids: Iterable[int] = ()) -> None:
        self._places = {token: place for place, token in enumerate(dict.fromkeys(prompt_ids))}
        self.ids = array("q", self._places)
        self.counts = array("i", [0]) * len(self._places)

    def add(self, token_id: int) -> None:
        """Takes the answer's next token."""
        place = self._places.setdefault(token_id, len(self.ids))
        if place == len(self.ids):
            self.ids.append(token_id)
            self.counts.append(0)
        self.counts[place] += 1
