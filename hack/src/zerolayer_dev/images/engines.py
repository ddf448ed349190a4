"""The programs that build images: buildah where there is no container engine, docker, podman."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from zerolayer_dev.cluster.prerequisites import IMAGES as PREREQUISITES
from zerolayer_dev.cluster.prerequisites import require
from zerolayer_dev.images import base
from zerolayer_dev.images.progress import BuildError, run
from zerolayer_dev.paths import cache_dir

if TYPE_CHECKING:
    from collections.abc import Mapping

# Where the build finds the machine's certificates. Mounted, never copied: whom this machine trusts is no
# part of an image.
_CERTIFICATES = "/run/build-certificates.crt"


class Engine(Protocol):
    """Builds images from Dockerfiles and writes them as OCI archives."""

    base_key: str
    """Names the base image that the engine takes, as a part of what an image is made of."""

    def build(
        self, label: str, reference: str, contexts: Mapping[str, Path], build_args: Mapping[str, str]
    ) -> None:
        """Build an image; `contexts` has the main one under `""`, `label` names it in the output."""
        ...

    def save(self, label: str, reference: str, archive: Path) -> None:
        """Write a built image to `archive`."""
        ...


def choose() -> Engine:
    """The engine that `IMAGE_BUILDER` names; buildah by default.

    Raises:
        BuildError: There is none of that name.
    """
    name = os.environ.get("IMAGE_BUILDER", "buildah")
    if name == "buildah":
        return Buildah()
    if name in ("docker", "podman"):
        return ContainerEngine(name)
    raise BuildError(f"IMAGE_BUILDER is {name!r}; it can be buildah, docker or podman")


class Buildah:
    """Builds without a container engine, in a store of its own in the cache.

    Raises:
        MissingPrerequisitesError: The machine lacks buildah, mmdebstrap or root.
    """

    def __init__(self) -> None:
        require(*PREREQUISITES)
        self.home = cache_dir() / "buildah"
        self.home.mkdir(parents=True, exist_ok=True)
        self.base_key = base.key()

    def build(
        self, label: str, reference: str, contexts: Mapping[str, Path], build_args: Mapping[str, str]
    ) -> None:
        """See `Engine`; makes the base image first where it is missing."""
        if reference != base.REFERENCE:
            base.ensure(self)
        options = ["--isolation", "chroot", "--layers", "--pull-never", *_build_options(contexts, build_args)]
        if certificates := _certificates():
            options += [
                "--volume",
                f"{certificates}:{_CERTIFICATES}:ro",
                "--build-arg",
                f"PIP_CERT={_CERTIFICATES}",
            ]
        run(
            label,
            [*self._command("build"), *options, "--tag", reference, str(contexts[""])],
            self._log(label),
        )

    def save(self, label: str, reference: str, archive: Path) -> None:
        """See `Engine`. The layers stay uncompressed: they never leave this machine."""
        command = self._command(
            "push", "--disable-compression", reference, f"oci-archive:{archive}:{reference}"
        )
        run(label, command, self._log(label))

    def output(self, *arguments: str) -> str:
        """Run buildah and return what it prints."""
        done = subprocess.run(self._command(*arguments), check=True, capture_output=True, text=True)
        return done.stdout

    def _command(self, *arguments: str) -> list[str]:
        store = ["--root", str(self.home / "storage"), "--runroot", str(self.home / "run")]
        return ["buildah", *store, "--storage-driver", "overlay", *arguments]

    def _log(self, label: str) -> Path:
        return self.home / "logs" / f"{label}.log"


class ContainerEngine:
    """Docker or podman, for those who have one."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.base_key = program

    def build(
        self, label: str, reference: str, contexts: Mapping[str, Path], build_args: Mapping[str, str]
    ) -> None:
        """See `Engine`; the base image comes from where the engine takes its images."""
        options = _build_options(contexts, build_args)
        if self.program == "docker":
            options.append("--progress=plain")
        command = [self.program, "build", *options, "--tag", reference, str(contexts[""])]
        run(label, command, self._log(label))

    def save(self, label: str, reference: str, archive: Path) -> None:
        """See `Engine`."""
        form = [] if self.program == "docker" else ["--format", "oci-archive"]
        run(label, [self.program, "save", *form, "--output", str(archive), reference], self._log(label))

    def _log(self, label: str) -> Path:
        return cache_dir() / "images" / "logs" / f"{label}.log"


def _build_options(contexts: Mapping[str, Path], build_args: Mapping[str, str]) -> list[str]:
    named = [(name, path) for name, path in contexts.items() if name]
    options = [part for name, path in named for part in ("--build-context", f"{name}={path}")]
    return options + [
        part for name, value in build_args.items() for part in ("--build-arg", f"{name}={value}")
    ]


def _certificates() -> Path | None:
    path = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
    return path if path.exists() else None
