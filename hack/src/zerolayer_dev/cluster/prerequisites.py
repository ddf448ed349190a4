"""What the local cluster needs from the machine, and the command that provides what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

GO_VERSION = (1, 26)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CNI_DIRECTORIES = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
_CNI_PLUGINS = ("ptp", "host-local", "portmap", "loopback")


@dataclass(frozen=True)
class Machine:
    """What a check may look at.

    Attributes:
        user_id: of this process; 0 is root.
        which: finds a program on the PATH.
        go_version: (major, minor) of the Go toolchain, None without one.
        cni_plugins: names of the CNI plugins found.
    """

    user_id: int
    which: Callable[[str], str | None]
    go_version: tuple[int, int] | None
    cni_plugins: frozenset[str]


@dataclass(frozen=True)
class Prerequisite:
    """One thing the machine must have.

    Attributes:
        name: what it is, for the message.
        present: tells whether the machine has it.
        packages: Debian packages that provide it.
        remedy: what to do instead of installing packages.
    """

    name: str
    present: Callable[[Machine], bool]
    packages: tuple[str, ...] = ()
    remedy: str = ""


def _program(name: str, package: str) -> Prerequisite:
    return Prerequisite(name, lambda machine: machine.which(name) is not None, (package,))


ROOT = Prerequisite(
    "root", lambda machine: machine.user_id == 0, remedy="run the command as root: sudo -E env PATH=$PATH …"
)
UV = Prerequisite(
    "uv",
    lambda machine: machine.which("uv") is not None,
    remedy="install uv: https://docs.astral.sh/uv/getting-started/installation/",
)
GO = Prerequisite(
    f"Go ≥ {GO_VERSION[0]}.{GO_VERSION[1]}",
    lambda machine: machine.go_version is not None and machine.go_version >= GO_VERSION,
    remedy="install Go from https://go.dev/dl/ and put its bin folder on the PATH",
)
CONTROL_PLANE = (
    ROOT,
    _program("unshare", "util-linux"),
    _program("nsenter", "util-linux"),
    _program("mount", "mount"),
    _program("ip", "iproute2"),
)
NODE = (
    *CONTROL_PLANE,
    _program("runc", "runc"),
    Prerequisite(
        "CNI plugins",
        lambda machine: machine.cni_plugins.issuperset(_CNI_PLUGINS),
        ("containernetworking-plugins",),
    ),
    _program("nft", "nftables"),
    _program("iptables", "iptables"),
    _program("conntrack", "conntrack"),
)
IMAGES = (
    ROOT,
    _program("buildah", "buildah"),
    _program("mmdebstrap", "mmdebstrap"),
    _program("zstd", "zstd"),
)
# What the worker's native passes are compiled with, where no image brings it along.
COMPILER = _program("g++", "g++")
# Not a part of everything: one test alone asks for it.
BROWSER = Prerequisite("Chromium", lambda machine: any(map(machine.which, BROWSERS)), ("chromium",))
EVERYTHING = tuple(dict.fromkeys((*NODE, *IMAGES, GO, UV, COMPILER)))


class MissingPrerequisitesError(RuntimeError):
    """The machine lacks something; the message says what and names the command that fixes it."""

    def __init__(self, missing: Sequence[Prerequisite]) -> None:
        super().__init__(explain(missing))
        self.missing = tuple(missing)


def look() -> Machine:
    """Look at this machine."""
    return Machine(os.geteuid(), shutil.which, _installed_go(), _installed_cni_plugins())


def missing(wanted: Iterable[Prerequisite], machine: Machine) -> list[Prerequisite]:
    """Return those of the wanted prerequisites that the machine lacks."""
    return [prerequisite for prerequisite in wanted if not prerequisite.present(machine)]


def require(*wanted: Prerequisite) -> None:
    """Check prerequisites.

    Raises:
        MissingPrerequisitesError: one of them is missing.
    """
    if lacking := missing(wanted, look()):
        raise MissingPrerequisitesError(lacking)


def install(lacking: Iterable[Prerequisite]) -> None:
    """Install what apt-get can provide; do nothing where it or root is not there.

    Raises:
        subprocess.CalledProcessError: apt-get failed; its output is on stderr.
    """
    command = install_command(lacking)
    if command and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "--quiet"], check=True)
        subprocess.run(command, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def provide(*wanted: Prerequisite) -> None:
    """Install what is missing of some prerequisites.

    Raises:
        MissingPrerequisitesError: one of them is still missing.
        subprocess.CalledProcessError: apt-get failed; its output is on stderr.
    """
    install(missing(wanted, look()))
    require(*wanted)


def browser() -> str:
    """Return the path of the browser.

    Raises:
        MissingPrerequisitesError: there is none.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise MissingPrerequisitesError([BROWSER])
    return found


def packages(lacking: Iterable[Prerequisite]) -> list[str]:
    """Return the Debian packages that provide what is missing, each once."""
    return list(dict.fromkeys(package for prerequisite in lacking for package in prerequisite.packages))


def install_command(lacking: Iterable[Prerequisite]) -> list[str]:
    """Return the command that installs what packages can provide; empty where they cannot."""
    wanted = packages(lacking)
    return ["apt-get", "install", "--yes", "--no-install-recommends", *wanted] if wanted else []


def explain(lacking: Sequence[Prerequisite]) -> str:
    """Return a message that names what is missing and what to do about it."""
    lines = ["missing on this machine: " + ", ".join(prerequisite.name for prerequisite in lacking)]
    lines += [f"  {item.name}: {item.remedy}" for item in lacking if item.remedy]
    if command := install_command(lacking):
        lines += [
            f"  {' '.join(command)}",
            "  (or the same as: python -m zerolayer_dev prerequisites --install)",
        ]
    return "\n".join(lines)


def parse_go_version(text: str) -> tuple[int, int] | None:
    """Return (major, minor) out of what `go env GOVERSION` prints, such as `go1.26.8`."""
    found = re.match(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def cni_directory() -> Path | None:
    """Return the folder that holds the CNI plugins."""
    return next((path for path in CNI_DIRECTORIES if (path / _CNI_PLUGINS[0]).exists()), None)


def _installed_go() -> tuple[int, int] | None:
    if shutil.which("go") is None:
        return None
    output = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    return parse_go_version(output)


def _installed_cni_plugins() -> frozenset[str]:
    directory = cni_directory()
    return frozenset(path.name for path in directory.iterdir()) if directory else frozenset()
