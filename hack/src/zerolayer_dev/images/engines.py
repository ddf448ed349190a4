"""What builds images: buildah where there is no container engine, docker, podman."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from zerolayer_dev.images.progress import BuildError, run
from zerolayer_dev.paths import cache_dir

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class HeavyStage:
    """A stage of a Dockerfile that is worth an image of its own.

    Attributes:
        name: The stage.
        key: Names everything that it is made of.
    """

    name: str
    key: str


@dataclass(frozen=True)
class Request:
    """An image to be built.

    Attributes:
        label: Names it in the output.
        reference: Its full name.
        contexts: Folders of the build contexts; the main one, with the Dockerfile, under `""`.
        build_args: Build arguments.
        heavy: The stage to build once and keep, for engines that would otherwise look at it each time.
    """

    label: str
    reference: str
    contexts: Mapping[str, Path]
    build_args: Mapping[str, str] = field(default_factory=dict)
    heavy: HeavyStage | None = None

    def options(self) -> list[str]:
        """The options that every engine understands."""
        named = [(name, path) for name, path in self.contexts.items() if name]
        contexts = [part for name, path in named for part in ("--build-context", f"{name}={path}")]
        arguments = [f"{name}={value}" for name, value in self.build_args.items()]
        return contexts + [part for argument in arguments for part in ("--build-arg", argument)]


class Engine(Protocol):
    """Builds images from Dockerfiles and writes them as OCI archives."""

    base_key: str
    """Names the base image that the engine takes, as a part of what an image is made of."""

    def build(self, request: Request) -> None:
        """Build an image."""
        ...

    def save(self, request: Request, archive: Path) -> None:
        """Write a built image to `archive`."""
        ...


def choose() -> Engine:
    """The engine that `IMAGE_BUILDER` names; buildah by default.

    Raises:
        BuildError: There is none of that name.
        MissingPrerequisitesError: The machine lacks what buildah needs.
    """
    from zerolayer_dev.images.buildah import Buildah  # noqa: PLC0415 - it knows this module's types

    name = os.environ.get("IMAGE_BUILDER", "buildah")
    if name == "buildah":
        return Buildah()
    if name in ("docker", "podman"):
        return ContainerEngine(name)
    raise BuildError(f"IMAGE_BUILDER is {name!r}; it can be buildah, docker or podman")


class ContainerEngine:
    """Docker or podman, for those who have one. The base image comes from where it takes its images."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.base_key = program

    def build(self, request: Request) -> None:
        """See `Engine`."""
        form = ["--progress=plain"] if self.program == "docker" else ["--format", "oci"]
        command = [self.program, "build", *form, *request.options(), "--tag", request.reference]
        run(request.label, [*command, request.contexts[""]], self._log(request))

    def save(self, request: Request, archive: Path) -> None:
        """See `Engine`."""
        form = [] if self.program == "docker" else ["--format", "oci-archive"]
        command = [self.program, "save", *form, "--output", archive, request.reference]
        run(request.label, command, self._log(request))

    def _log(self, request: Request) -> Path:
        return cache_dir() / "images" / "logs" / f"{request.label}.log"
