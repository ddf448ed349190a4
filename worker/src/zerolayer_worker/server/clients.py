"""Who a request comes from, as the engine shares itself out fairly: a name that tells nothing."""

import hashlib
from collections.abc import Mapping

from zerolayer_worker.server.auth import presented_key


def client_of(headers: Mapping[str, str], user: object) -> str:
    """An opaque name for the holder of a key, or for one of its users where the request names one.

    Args:
        headers: the request's; a key counts whether the worker checks keys or not.
        user: what the body names as the user; anything but text counts as none.

    Returns:
        16 hexadecimal digits; nothing where the request says neither.
    """
    key, named = presented_key(headers) or "", user if isinstance(user, str) else ""
    if not key and not named:
        return ""
    said = f"{len(key)}:{key}{named}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=8).hexdigest()
