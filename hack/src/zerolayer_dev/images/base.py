"""`debian:bookworm-slim` without a registry: bootstrapped from Debian's own packages."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from zerolayer_dev.images import progress
from zerolayer_dev.images.engines import Request

if TYPE_CHECKING:
    from zerolayer_dev.images.buildah import Buildah

REFERENCE = "docker.io/library/debian:bookworm-slim"
_KEY_LABEL = "dev.zerolayer.base"
_MIRROR = "http://deb.debian.org"
_SOURCES = (
    f"deb {_MIRROR}/debian bookworm main",
    f"deb {_MIRROR}/debian bookworm-updates main",
    f"deb {_MIRROR}/debian-security bookworm-security main",
)
# What the official slim image leaves out as well.
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*")
_OPTIONS = (
    "--variant=minbase",
    # Without these two, Debian's transition to a merged /usr leaves all of perl behind.
    "--include=usr-is-merged",
    "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
    '--aptopt=APT::Install-Recommends "false"',
    *(f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT),
    "--customize-hook=rm -rf $1/var/lib/apt/lists/* $1/var/cache/apt/* $1/var/log/*",
)
DOCKERFILE = f"""FROM scratch
ADD rootfs.tar /
LABEL {_KEY_LABEL}={{key}}
CMD ["bash"]
"""


def key() -> str:
    """Names what the base image is made of."""
    return hashlib.sha256("\n".join([*_OPTIONS, *_SOURCES, DOCKERFILE]).encode()).hexdigest()[:16]


def ensure(buildah: Buildah) -> None:
    """Make the base image unless the store holds it."""
    present = buildah.output("images", "--quiet", "--filter", f"label={_KEY_LABEL}={key()}")
    if present.strip():
        return
    progress.report("base image: bootstrapping Debian bookworm …")
    with tempfile.TemporaryDirectory(dir=buildah.home) as scratch:
        folder = Path(scratch)
        sources = folder / "sources.list"
        sources.write_text("\n".join(_SOURCES) + "\n")
        subprocess.run(
            ["mmdebstrap", "--quiet", *_OPTIONS, "bookworm", folder / "rootfs.tar", sources], check=True
        )
        (folder / "Dockerfile").write_text(DOCKERFILE.format(key=key()))
        buildah.build(Request("base", REFERENCE, {"": folder}))
