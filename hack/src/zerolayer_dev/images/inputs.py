"""What an image is made of: the files of its build contexts, laid out for the build and hashed."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

# Every file gets the same time, so that a fresh checkout finds the layers of an older one.
_TIMESTAMP = 1_577_836_800  # 2020-01-01, after the earliest date that a zip file can hold


@dataclass(frozen=True)
class Inputs:
    """The files of a build, by context and by path within it.

    Attributes:
        contexts: `""` is the main context; the others are named in `COPY --from=NAME`.
    """

    contexts: Mapping[str, Mapping[str, Path]]

    def digest(self, *further: str) -> str:
        """Sixteen hex digits over every name, mode and content, and over `further`."""
        whole = hashlib.sha256()
        for text in further:
            whole.update(text.encode() + b"\0")
        for context, files in sorted(self.contexts.items()):
            for name, path in sorted(files.items()):
                executable = os.access(path, os.X_OK)
                whole.update(f"{context}\0{name}\0{executable}\0{_sha256(path)}\0".encode())
        return whole.hexdigest()[:16]

    def without(self, pattern: str) -> Inputs:
        """The same without those files of the main context whose names fit the glob pattern."""
        main = {name: path for name, path in self.contexts[""].items() if not fnmatch(name, pattern)}
        return Inputs({**self.contexts, "": main})

    def lay_out(self, folder: Path) -> dict[str, Path]:
        """Copy the files below `folder`; returns the folder of each context."""
        return {
            context: _lay_out(files, folder / (context or "main")) for context, files in self.contexts.items()
        }


def select(folder: Path, patterns: Iterable[str]) -> dict[str, Path]:
    """The files below `folder` that the glob patterns name, without what Python left behind.

    Raises:
        FileNotFoundError: A pattern fits no file.
    """
    found: dict[str, Path] = {}
    for pattern in patterns:
        files = {
            path.relative_to(folder).as_posix(): path
            for path in folder.glob(pattern)
            if path.is_file() and "__pycache__" not in path.parts
        }
        if not files:
            raise FileNotFoundError(f"no file fits {folder}/{pattern}")
        found |= files
    return found


def _lay_out(files: Mapping[str, Path], folder: Path) -> Path:
    for name, source in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (_TIMESTAMP, _TIMESTAMP))
    return folder


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
