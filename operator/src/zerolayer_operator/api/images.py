"""Image references, taken apart the way container runtimes do."""

import re
from dataclasses import dataclass
from typing import Final

DOCKER_HUB: Final = "docker.io"
"""The registry of references that name none."""

_REGISTRY: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?")
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_WITHIN: Final = re.compile(
    rf"(?P<repository>{_PART}(?:/{_PART})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class TaggedImage:
    """What a reference with a tag names.

    Attributes:
        registry: Host in lower case, with its port where the reference has one.
        repository: Path inside the registry.
        tag: ``latest`` where the reference names none.
    """

    registry: str
    repository: str
    tag: str


def has_digest(reference: str) -> bool:
    """Whether a reference names what can't change."""
    return "@" in reference


def tagged_image(reference: str) -> TaggedImage | None:
    """The parts of a reference without a digest; ``None`` where it is not one."""
    first, slash, rest = reference.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    registry, within = (first.lower(), rest) if is_host else (DOCKER_HUB, reference)
    found = _WITHIN.fullmatch(within)
    if found is None or _REGISTRY.fullmatch(registry) is None:
        return None
    repository: str = found["repository"]
    if registry == DOCKER_HUB and "/" not in repository:
        repository = f"library/{repository}"
    return TaggedImage(registry, repository, found["tag"] or "latest")
