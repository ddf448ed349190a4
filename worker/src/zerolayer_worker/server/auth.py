"""API keys from a mounted directory."""

import hashlib
import hmac
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from zerolayer_worker.server.errors import ApiError

_log = logging.getLogger(__name__)
_SPACE = " \t\r\n"
Signature = tuple[tuple[str, int, int, int], ...]


def presented_key(headers: Mapping[str, str]) -> str | None:
    """The key a client sent, as `x-api-key` or `Authorization: Bearer`."""
    if key := headers.get("x-api-key"):
        return key.strip(_SPACE)
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip(_SPACE) if scheme.lower() == "bearer" and token.strip(_SPACE) else None


def sent_bytes(key: str) -> bytes:
    """A key as it came over the wire, where headers are bytes that the server reads as Latin-1."""
    return key.encode("latin-1", "backslashreplace")


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


class KeyRing:
    """The keys in a directory: one per file; dot files, sub-directories and empty files do not count.

    A changed directory is noticed within `check_every` seconds. If it can't be read, the keys read last
    stay valid, so that a remount locks nobody out; before the first successful read no key is valid.
    """

    def __init__(
        self, directory: Path, *, check_every: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._directory = directory
        self._check_every = check_every
        self._clock = clock
        self._checked_at = float("-inf")
        self._signature: Signature | None = None
        self._digests: tuple[bytes, ...] = ()

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuses a request without a valid key.

        Raises:
            ApiError: 401 that says how to send a key, never which keys there are.
        """
        key = presented_key(headers)
        if key is None:
            message = "No API key: send it as x-api-key or as Authorization: Bearer"
            raise ApiError(401, message, reason="no_key")
        if not self.accepts(key):
            raise ApiError(401, "The API key is not valid for this pool", reason="wrong_key")

    def accepts(self, key: str) -> bool:
        """Whether a key is valid; takes the same time whichever key matches, or none."""
        self._refresh()
        digest = _digest(sent_bytes(key))
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        return any(matches)

    def _refresh(self) -> None:
        now = self._clock()
        if now - self._checked_at < self._check_every:
            return
        self._checked_at = now
        try:
            files = self._files()
            signature = tuple((path.name, *_identity(path)) for path in files)
            if signature == self._signature:
                return
            # Bytes: one file that is no text must not keep the others' changes from being seen.
            keys = [path.read_bytes().strip() for path in files]
        except OSError as error:
            _log.error("API keys can't be read; those read last stay valid", extra={"cause": str(error)})
            return
        self._digests = tuple(_digest(key) for key in keys if key)
        self._signature = signature
        _log.info("API keys read", extra={"directory": str(self._directory), "keys": len(self._digests)})

    def _files(self) -> list[Path]:
        entries = sorted(self._directory.iterdir())
        return [path for path in entries if not path.name.startswith(".") and path.is_file()]


def _identity(path: Path) -> tuple[int, int, int]:
    """Changes when the content does; a Secret's update swaps the inode behind the symbolic link."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
