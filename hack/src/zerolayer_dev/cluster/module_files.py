"""Files that come with a program's source, such as its manifests: kept beside the program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from zerolayer_dev.cluster.binaries import GO_BINARIES, module_version, path_of
from zerolayer_dev.cluster.locks import held
from zerolayer_dev.cluster.prerequisites import GO, require
from zerolayer_dev.paths import cache_dir


def ensure_folder(program: str, folder: str, module: str | None = None) -> Path:
    """Return a copy of a folder of the module that a program is built from; make it where it is missing.

    Args:
        program: one of `GO_BINARIES`.
        folder: inside the module, such as `config`.
        module: another module that the program requires, in place of its own.

    Raises:
        MissingPrerequisitesError: the Go toolchain is needed and not there.
        subprocess.CalledProcessError: the module can't be had; what Go says is on stderr.
    """
    place = _beside(program, module) / folder
    if place.exists():
        return place
    with held(cache_dir() / "bin" / ".lock"):
        if not place.exists():
            _copy(_source(program, module) / folder, place)
    return place


def _beside(program: str, module: str | None) -> Path:
    folder = path_of(program).parent
    if module is None:
        return folder
    version = module_version((GO_BINARIES[program].source / "go.mod").read_text(), module)
    return folder / f"{module.rpartition('/')[-1]}-{version}"


def _source(program: str, module: str | None) -> Path:
    require(GO)
    binary = GO_BINARIES[program]
    downloaded = subprocess.run(
        ["go", "mod", "download", "-json", module or binary.module],
        cwd=binary.source,
        env={**os.environ, "GOFLAGS": "", "GOWORK": "off"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return Path(json.loads(downloaded.stdout)["Dir"])


def _copy(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_dir() / "bin", prefix=".unfinished-") as scratch:
        # Contents alone: Go keeps its modules read-only, and folders that can't be written can't be removed.
        for path in source.rglob("*"):
            copied = Path(scratch) / "copy" / path.relative_to(source)
            if path.is_file():
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copied)
        (Path(scratch) / "copy").rename(place)
