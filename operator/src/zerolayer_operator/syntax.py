"""Scalar types of the settings: what they refuse is told in words, by the name of the setting.

The chart's values.schema.json holds the same, so that a bad value is refused before anything is installed.
"""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from zerolayer_operator.api.types import DNS_1123_SUBDOMAIN

_PORT: Final = (
    "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"  # 1 to 65535
)
_NAME: Final = "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_HOST: Final = "[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
_LITERAL: Final = r"\[[0-9A-Fa-f:.]{2,45}\]"
_PATH: Final = r"/([^\x00-\x20\x7f%?#\s]|%[0-9A-Fa-f]{2})*"


def _syntax(pattern: str, wanted: str) -> AfterValidator:
    """Refuses what a pattern doesn't match, in words; the value, which may hold a secret, isn't told."""
    # As Helm reads the schema: \s and the like are ASCII alone.
    compiled = re.compile(pattern, re.ASCII)

    def check(value: str) -> str:
        if compiled.fullmatch(value) is None:
            raise PydanticCustomError("syntax", "{wanted}", {"wanted": wanted})
        return value

    return AfterValidator(check)


def _address(value: str) -> str:
    try:
        urlsplit(value)
    except ValueError as error:
        raise PydanticCustomError("address", "no address: {error}", {"error": str(error)}) from None
    return value


def listed_once(registries: tuple[str, ...]) -> tuple[str, ...]:
    """Refuses a host that is listed with and without TLS: only one of them would be asked."""
    entries: dict[str, str] = {}
    for entry in registries:
        host = entry.rpartition("://")[2].lower()
        other = entries.setdefault(host, entry)
        if other != entry:
            raise PydanticCustomError(
                "listed_twice",
                "{host} is listed twice, as {first} and as {second}; keep one of them",
                {"host": host, "first": other, "second": entry},
            )
    return registries


Port = Annotated[int, Field(ge=1, le=65535)]
DnsLabel = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
DnsSubdomain = Annotated[str, Field(max_length=253, pattern=DNS_1123_SUBDOMAIN)]
Image = Annotated[
    str,
    Field(min_length=1),
    _syntax(
        rf"(({_LITERAL}|[^\s:/@\[\]]+)(:{_PORT})?/)?[^\s:@]+(:[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(@[^\s@]+)?",
        "an image is [host[:port]/]path[:tag][@digest], with a port from 1 to 65535",
    ),
]
Endpoint = Annotated[
    str,
    _syntax(
        rf"https?://({_LITERAL}|{_HOST})(:{_PORT})?({_PATH})?",
        "an endpoint is http:// or https:// with a host, a port from 1 to 65535 or none, and a path or none",
    ),
    AfterValidator(_address),
]
Registry = Annotated[
    str,
    _syntax(
        rf"(https?://)?{_HOST}(:{_PORT})?",
        "a registry is host or host:port, with a port from 1 to 65535, and http:// before one without TLS",
    ),
]
Interval = Annotated[
    str,
    _syntax(
        r"(?=.*[1-9])([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?([0-9]{1,6}ms)?",
        "an interval is a time above 0 in hours, minutes, seconds and milliseconds, in this order, with at "
        "most six digits each, such as 30s or 1m30s",
    ),
]
LabelKey = Annotated[
    str,
    _syntax(
        rf"((?=[^/]{{1,253}}/){DNS_1123_SUBDOMAIN[1:-1]}/)?{_NAME}",
        "a label's key is at most 63 letters, digits, '-', '_' and '.', from a letter or digit to another, "
        "after a DNS name and '/' or none",
    ),
]
LabelValue = Annotated[
    str,
    _syntax(
        rf"({_NAME})?",
        "a label's value is empty or at most 63 letters, digits, '-', '_' and '.', from a letter or digit to "
        "another",
    ),
]
