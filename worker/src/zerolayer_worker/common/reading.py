"""Reading small files that others write."""

from pathlib import Path


class TooLargeError(OSError):
    """The file holds more than its kind may."""


def read_bounded(path: Path, limit: int) -> bytes:
    """Reads a file of at most `limit` bytes, once: what is hashed is what is used.

    Raises:
        TooLargeError: it is larger; no more than the limit was read.
        OSError: it can't be read.
    """
    with path.open("rb") as opened:
        content = opened.read(limit + 1)
    if len(content) > limit:
        raise TooLargeError(f"larger than {limit} bytes")
    return content
