"""API keys from a mounted directory."""

import hashlib
import hmac
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from zerolayer_worker.server.errors import ApiError

_log = logging.getLogger(__name__)
_SPACE = " \t\r\n"
_CONTROLS = frozenset(range(0x20)) - {0x09} | {0x7F}
Identity = tuple[int, int, int]


class KeyFormError(ValueError):
    """What a file holds is no key; the message says why, and nothing of what it holds."""


def presented_key(headers: Mapping[str, str]) -> str | None:
    """The key a client sent, as `x-api-key` or `Authorization: Bearer`."""
    if key := headers.get("x-api-key"):
        return key.strip(_SPACE)
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip(_SPACE) if scheme.lower() == "bearer" and token.strip(_SPACE) else None


def sent_bytes(key: str) -> bytes:
    """A key as it came over the wire, where headers are bytes that the server reads as Latin-1."""
    return key.encode("latin-1", "backslashreplace")


def parse_key(content: bytes) -> bytes:
    """The key in a file, without white space around it: most tools end a file with a line break.

    Raises:
        KeyFormError: it is empty, or nothing that a client could send.
    """
    key = content.strip()
    if not key:
        raise KeyFormError("is empty")
    if b"\n" in key or b"\r" in key:
        raise KeyFormError("holds several lines; give each key an entry of its own")
    if not _CONTROLS.isdisjoint(key):
        raise KeyFormError("holds a control character, which no header can carry")
    return key


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is known of one file.

    Attributes:
        identity: changes when the content does; None where it has to be read again.
        digest: of its key; None without a valid one.
        fault: why it gives no key, or an old one; empty where all is well.
    """

    identity: Identity | None
    digest: bytes | None
    fault: str = ""


class KeyRing:
    """The keys in a directory: one per file; dot files and sub-directories do not count.

    A changed directory is noticed within `check_every` seconds. What can't be read keeps the key it had, so
    that a remount or a disk's fault locks nobody out, and is logged once and counted; before the first
    successful read no key is valid. A file that is gone, or holds no key, takes its key with it at once.
    """

    def __init__(
        self,
        directory: Path,
        *,
        on_faults: Callable[[int], None] = lambda _count: None,
        check_every: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Reads nothing yet.

        Args:
            directory: the mounted Secret.
            on_faults: told how many files give no key, or an old one.
            check_every: seconds for which what was read counts as new.
            clock: seconds that only grow.
        """
        self._directory = directory
        self._on_faults = on_faults
        self._check_every = check_every
        self._clock = clock
        self._checked_at = float("-inf")
        self._entries: dict[str, _Entry] = {}
        self._faults: dict[str, str] = {}
        self._digests: tuple[bytes, ...] | None = None

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
        self.refresh()
        digest = _digest(sent_bytes(key))
        matches = [hmac.compare_digest(digest, known) for known in self._digests or ()]
        return any(matches)

    def refresh(self) -> None:
        """Looks whether the keys changed, if that was not done lately."""
        now = self._clock()
        if now - self._checked_at < self._check_every:
            return
        self._checked_at = now
        faults: dict[str, str] = {}
        try:
            read = {path.name: self._entry(path) for path in self._files()}
            self._entries = {name: entry for name, entry in read.items() if entry is not None}
        except OSError as error:
            faults[str(self._directory)] = _unreadable(error)
        faults |= {name: entry.fault for name, entry in self._entries.items() if entry.fault}
        self._tell(faults)
        self._take(tuple(entry.digest for entry in self._entries.values() if entry.digest is not None))

    def _files(self) -> list[Path]:
        entries = sorted(self._directory.iterdir())
        return [path for path in entries if not path.name.startswith(".") and path.is_file()]

    def _entry(self, path: Path) -> _Entry | None:
        """Reads a file if it changed; None where it went away meanwhile."""
        known = self._entries.get(path.name)
        identity: Identity | None = None
        try:
            identity = _identity(path)
            if known is not None and known.identity == identity:
                return known
            return _Entry(identity, _digest(parse_key(path.read_bytes())))
        except KeyFormError as error:
            return _Entry(identity, None, str(error))
        except FileNotFoundError:
            return None
        except OSError as error:
            return _Entry(None, known.digest if known else None, _unreadable(error))

    def _tell(self, faults: dict[str, str]) -> None:
        if faults == self._faults:
            return
        for name, fault in faults.items() - self._faults.items():
            _log.error("an API key is not up to date: %s %s", name, fault, extra={"entry": name})
        for name in self._faults.keys() - faults.keys():
            _log.info("an API key is up to date again", extra={"entry": name})
        self._faults = faults
        self._on_faults(len(faults))

    def _take(self, digests: tuple[bytes, ...]) -> None:
        if digests == self._digests:
            return
        self._digests = digests
        about = {"directory": str(self._directory), "keys": len(digests)}
        if digests:
            _log.info("API keys read", extra=about)
        else:
            _log.error("no API key is valid: every request is refused", extra=about)


def _identity(path: Path) -> Identity:
    """Changes when the content does; a Secret's update swaps the inode behind the symbolic link."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _unreadable(error: OSError) -> str:
    return f"can't be read ({error.strerror}); what was read last stays valid"
