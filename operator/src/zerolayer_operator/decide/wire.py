"""Moments and texts as a status holds them."""

from datetime import datetime, timedelta
from typing import Final

MESSAGE_LIMIT: Final = 4096


def wire_time(moment: datetime) -> str:
    """A moment as Kubernetes writes it: UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def later(moment: datetime, seconds: int) -> str:
    """The moment so many seconds after another one."""
    return wire_time(moment + timedelta(seconds=seconds))


def fitting(message: str, limit: int = MESSAGE_LIMIT) -> str:
    """What others say and a message quotes may be of any length; the schema bounds it."""
    return message if len(message) <= limit else message[: limit - 1] + "…"
