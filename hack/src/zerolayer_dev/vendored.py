"""Files of npm packages: those that lie in the repository, and those that tests fetch into the cache.

A package is pinned by its version and by the checksum that npm gives for its archive. `write` makes the
repository's copies out of the archive; `stale` says which of them differ from it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import httpx
import typer

from zerolayer_dev.cluster.locks import held
from zerolayer_dev.paths import cache_dir, repo_root

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_STATIC = "operator/src/zerolayer_operator/page/static/vendor"
_DOWNLOAD_S = 60


@dataclass(frozen=True)
class NpmPackage:
    """One version of a package.

    Attributes:
        name: of the package.
        version: of it.
        sha512: of its archive, in base64, as npm tells it (`npm view NAME@VERSION dist.integrity`).
        copies: where files of the archive lie in the repository.
    """

    name: str
    version: str
    sha512: str
    copies: Mapping[str, str] = field(default_factory=dict)

    @property
    def archive(self) -> Path:
        """Where its archive lies in the cache."""
        return cache_dir() / "npm" / f"{self.name}-{self.version}.tgz"


UPLOT = NpmPackage(
    "uplot",
    "1.6.32",
    "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
    {
        "dist/uPlot.iife.min.js": f"{_STATIC}/uPlot.iife.min.js",
        "dist/uPlot.min.css": f"{_STATIC}/uPlot.min.css",
        "LICENSE": f"{_STATIC}/LICENSE",
    },
)
# For tests alone; too large to keep a copy of.
AXE = NpmPackage(
    "axe-core",
    "4.14.1",
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
)


class WrongArchiveError(RuntimeError):
    """What the registry gave is not what the pin names."""


def fetch(package: NpmPackage) -> Path:
    """Return the package's archive, which is fetched into the cache where it is missing.

    Raises:
        WrongArchiveError: its checksum is not the pinned one.
        httpx.HTTPError: the registry does not give it.
    """
    with held(package.archive.parent / ".lock"):
        if not package.archive.exists():
            content = _download(package)
            unfinished = package.archive.with_suffix(".unfinished")
            unfinished.write_bytes(content)
            unfinished.rename(package.archive)
    return package.archive


def read(package: NpmPackage, name: str) -> bytes:
    """Return a file out of the package; see `fetch`.

    Raises:
        KeyError: it has no such file.
    """
    with tarfile.open(fetch(package)) as archive:
        content = archive.extractfile(f"package/{name}")
        if content is None:
            raise KeyError(f"{name} of {package.name} is no file")
        return content.read()


def stale(package: NpmPackage, root: Path) -> list[str]:
    """Return the copies below `root` that are not what the archive holds."""
    return [
        copy
        for name, copy in package.copies.items()
        if not (root / copy).exists() or (root / copy).read_bytes() != read(package, name)
    ]


def write(package: NpmPackage, root: Path) -> None:
    """Make the copies below `root` what the archive holds."""
    for name, copy in package.copies.items():
        (root / copy).parent.mkdir(parents=True, exist_ok=True)
        (root / copy).write_bytes(read(package, name))


def _download(package: NpmPackage) -> bytes:
    registry = os.environ.get("npm_config_registry", "https://registry.npmjs.org").rstrip("/")  # noqa: SIM112
    url = f"{registry}/{package.name}/-/{package.name}-{package.version}.tgz"
    answer = httpx.get(url, timeout=_DOWNLOAD_S, follow_redirects=True).raise_for_status()
    if base64.b64encode(hashlib.sha512(answer.content).digest()).decode() != package.sha512:
        raise WrongArchiveError(f"{url} is not the archive that is pinned")
    return answer.content


app = typer.Typer()


@app.callback(invoke_without_command=True)
def vendored(
    *, check: Annotated[bool, typer.Option(help="Change nothing; fail where a copy differs.")] = False
) -> None:
    """Write the repository's copies of npm packages' files, or say which differ."""
    differ = stale(UPLOT, repo_root())
    if check and differ:
        typer.echo(f"not what npm has: {', '.join(differ)}", err=True)
        raise typer.Exit(1)
    write(UPLOT, repo_root())
    typer.echo(f"{', '.join(differ)} written" if differ else "every copy is what npm has")
