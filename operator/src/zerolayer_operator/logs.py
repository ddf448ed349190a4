"""Structured logs: one JSON object per line on stderr, and nothing secret in any of them."""

import logging
import re
import sys
from types import TracebackType
from typing import Any, Final, cast

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

REDACTED: Final = "[redacted]"

_SECRET_KEY = re.compile(
    r"(api[-_]?key|token|passw(or)?d|authorization|secret|credential|bearer|private[-_]?key)s?$",
    re.IGNORECASE,
)
_SECRET_VALUES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), REDACTED),
    (re.compile(r"\b(hf|sk|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{16,}"), REDACTED),
    (re.compile(r"(://[^/\s:@]+:)[^/\s@]+(@)"), rf"\1{REDACTED}\2"),
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
        REDACTED,
    ),
    (
        re.compile(
            r"""((?:api[-_]?key|token|passw(?:or)?d|authorization)["']?\s*[:=]\s*)(?!Bearer\b|Basic\b)("[^"]*"|'[^']*'|[^\s,;&}"']+)""",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
)
# Set on records by kopf's object loggers; they hold whole settings objects or are only meant for kopf.
_KOPF_ATTRS = ("k8s_ref", "k8s_skip", "settings")
_QUIET_LOGGERS = ("kopf", "aiohttp", "kubernetes", "asyncio")


def redact(value: Any) -> Any:
    """Replaces whatever looks like a secret, at any depth of strings, mappings and sequences."""
    if isinstance(value, str):
        for pattern, replacement in _SECRET_VALUES:
            value = pattern.sub(replacement, value)
        return value
    if isinstance(value, dict):
        mapping = cast("dict[Any, Any]", value)
        return {key: _redact_item(key, item) for key, item in mapping.items()}
    if isinstance(value, list | tuple | set):
        return [redact(item) for item in cast("list[Any]", value)]
    return value


def _redact_item(key: object, item: Any) -> Any:
    """A string under a key that names a secret is one; a reference to a Secret object is a mapping."""
    if isinstance(item, str | bytes) and _SECRET_KEY.search(str(key)):
        return REDACTED
    return redact(item)


class RedactingJsonFormatter(JsonFormatter):
    """Formats a record as one JSON line with `timestamp`, `level`, `logger`, `message` and its extras.

    A record that carries a Kubernetes object, as kopf's object loggers' do, gets an `object` field with its
    kind, namespace and name.
    """

    def __init__(self) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            ["levelname", "name", "message"],
            rename_fields={"levelname": "level", "name": "logger", "exc_info": "exception"},
            reserved_attrs=[*RESERVED_ATTRS, *_KOPF_ATTRS],
            timestamp=True,
        )

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        """Adds the object a record is about."""
        super().add_fields(log_data, record, message_dict)
        ref: dict[str, Any] | None = getattr(record, "k8s_ref", None)
        if ref:
            log_data["object"] = {key: ref.get(key) for key in ("kind", "namespace", "name")}

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        """Redacts the whole record, its traceback included."""
        return redact(super().process_log_record(log_data))


def configure(level: str) -> None:
    """Sends every record of the process to stderr as JSON.

    Libraries are only heard from WARNING upwards, unless `level` is DEBUG: kopf tells of each handler it
    calls, which is once per watch event.

    Args:
        level: Name of the least severe level that is logged.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingJsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    library_level = logging.DEBUG if level == "DEBUG" else max(logging.WARNING, root.level)
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(library_level)
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught


def _log_uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Keeps the last words of the process in the same format as all its others."""
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("zerolayer_operator").critical(
        "the operator ends: %s", error, exc_info=(kind, error, traceback)
    )
