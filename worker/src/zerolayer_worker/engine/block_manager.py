"""Hands out the KV cache's pages and remembers which hold the beginning of a prompt. Knows no tensors.

A page is free, or held by sequences, or cached: held by none, but kept for a prompt that begins the same.
Prompts share whole chunks of the prefill grid and only what prefill computed, so a hit changes no bit.
"""

import hashlib
import heapq
from array import array
from collections import OrderedDict
from collections.abc import Sequence


class NoPageError(Exception):
    """All pages are held."""


def prefix_keys(root: bytes, token_ids: Sequence[int], chunk: int) -> tuple[bytes, ...]:
    """Names each whole chunk of a prompt by all that its keys and values depend on.

    Each name is the SHA-256 of the name before it and the chunk's tokens; `root` stands before the first and
    names what computes: the model and everything applied to it.
    """
    keys: list[bytes] = []
    for start in range(0, len(token_ids) - chunk + 1, chunk):
        tokens = array("q", token_ids[start : start + chunk]).tobytes()
        root = hashlib.sha256(root + tokens).digest()
        keys.append(root)
    return tuple(keys)


class BlockManager:
    """Pages with reference counts, and the cached chunks among them.

    The lowest free pages are handed out first, so that memory which was never needed is never committed.
    When no page is free, the cached chunk whose last use is longest ago is forgotten.

    Args:
        pages: how many there are.
        page: tokens of a page.
        chunk: tokens of a prefill chunk, a multiple of `page`.
    """

    def __init__(self, *, pages: int, page: int, chunk: int) -> None:
        if pages < 1 or page < 1 or chunk % page:
            raise ValueError("there must be a page, and a chunk must be a multiple of it")
        self._page = page
        self._chunk = chunk
        self._holders = [0] * pages
        self._used = 0
        self._free = list(range(pages))
        self._chunks: dict[bytes, tuple[int, ...]] = {}
        self._key_of: dict[int, bytes] = {}
        # Chunks that no sequence holds, the one to be forgotten first in front.
        self._cached: OrderedDict[bytes, None] = OrderedDict()

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return len(self._holders)

    @property
    def used(self) -> int:
        """Pages that sequences hold."""
        return self._used

    @property
    def cached(self) -> int:
        """Pages that are kept for later prompts."""
        return self.pages - self._used - len(self._free)

    @property
    def available(self) -> int:
        """Pages that a sequence could get: the free and the cached ones."""
        return self.pages - self._used

    @property
    def chunk(self) -> int:
        """Tokens of a prefill chunk."""
        return self._chunk

    def pages_for(self, tokens: int) -> int:
        """How many pages hold so many tokens."""
        return -(-tokens // self._page)

    def find(self, keys: Sequence[bytes]) -> list[int]:
        """The pages of the leading chunks that are there; nothing changes."""
        found: list[int] = []
        for key in keys:
            if key not in self._chunks:
                break
            found += self._chunks[key]
        return found

    def idle(self, pages: Sequence[int]) -> int:
        """How many of these are held by no sequence, and so count as available."""
        return sum(not self._holders[page] for page in pages)

    def share(self, pages: Sequence[int]) -> None:
        """Holds pages that `find` returned once more each."""
        for page in pages:
            if not self._holders[page]:
                self._used += 1
                self._cached.pop(self._key_of[page], None)
            self._holders[page] += 1

    def allocate(self, count: int) -> list[int]:
        """Holds so many more pages.

        Raises:
            NoPageError: fewer are available; nothing has changed.
        """
        if count > self.available:
            raise NoPageError
        while len(self._free) < count:
            self._forget()
        pages = [heapq.heappop(self._free) for _ in range(count)]
        for page in pages:
            self._holders[page] = 1
        self._used += count
        return pages

    def publish(self, key: bytes, pages: Sequence[int]) -> None:
        """Lets later prompts find a chunk in pages that are held; nothing happens if it is known already."""
        if key not in self._chunks:
            self._chunks[key] = tuple(pages)
            self._key_of |= dict.fromkeys(pages, key)

    def release(self, table: Sequence[int]) -> None:
        """Gives a sequence's pages back. Of its cached chunks, the first is to be forgotten last."""
        for page in reversed(table):
            self._holders[page] -= 1
            if self._holders[page]:
                continue
            self._used -= 1
            key = self._key_of.get(page)
            if key is None:
                heapq.heappush(self._free, page)
            else:
                self._cached[key] = None

    def _forget(self) -> None:
        key, _ = self._cached.popitem(last=False)
        for page in self._chunks.pop(key):
            del self._key_of[page]
            heapq.heappush(self._free, page)
