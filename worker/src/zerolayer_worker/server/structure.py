"""How much structure a JSON text has, found out without decoding it."""

from typing import Final

CHUNK_BYTES: Final = 64 * 1024
"""What is looked at in one go: other threads get their turn between two chunks."""

_MARKS: Final = (b"{", b"[", b":")


def exceeds(text: bytes, most: int, *, chunk: int = CHUNK_BYTES) -> bool:
    """Whether a JSON text has more than `most` objects, lists and fields; what strings hold does not count.

    Each costs the decoder and all that comes after it about as much as a kilobyte of text.

    Args:
        text: needn't be valid: what stands before its first fault, which is all that gets decoded, is
            counted right.
        most: the limit.
        chunk: bytes looked at in one go.
    """
    if _marks(text) <= most:
        return False
    # Now every quotation mark begins or ends a string.
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    found, inside = 0, False
    for start in range(0, len(plain), chunk):
        pieces = plain[start : start + chunk].split(b'"')
        found += _marks(b"".join(pieces[inside::2]))
        if found > most:
            return True
        inside ^= len(pieces) % 2 == 0
    return False


def _marks(text: bytes) -> int:
    return sum(map(text.count, _MARKS))
