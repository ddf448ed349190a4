"""Compiles the native passes, once per source, compiler flags and kind of CPU.

An image brings the libraries along; elsewhere the first start compiles into the cache, in some seconds.
"""

import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent / "csrc"
BUNDLED: Final = Path(__file__).parent / "lib"
"""Where an image keeps what was compiled for it."""

_FLAGS = (
    # Where a product and a sum become one operation is the sources' choice: left to the compiler, the same
    # loop over two vectors and over three could round differently.
    *("-std=c++20", "-O3", "-fno-math-errno", "-ffp-contract=off", "-shared", "-fPIC", "-pthread"),
    # The image has no C++ runtime of its own; torch brings another one.
    *("-static-libstdc++", "-static-libgcc"),
)
_TIMEOUT_S = 300
_V3_FEATURES = frozenset({"avx2", "fma", "f16c", "bmi2"})
# The instructions that each level uses, by their names in /proc/cpuinfo; best first.
_FEATURES: Final = {
    "x86-64-v4": _V3_FEATURES | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": _V3_FEATURES,
    "x86-64": frozenset[str](),
}

_log = logging.getLogger(__name__)


class NativeError(Exception):
    """The library can't be had; the message says why and what would help."""


def levels(machine: str = platform.machine()) -> tuple[str, ...]:
    """What `compile_library` can be asked for on this kind of machine, best first."""
    return tuple(_FEATURES) if machine == "x86_64" else ("native",)


def best_level(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The level for the CPU at hand."""
    found = cpu_flags(cpuinfo)
    return next(level for level in levels() if found >= _FEATURES.get(level, frozenset()))


def cpu_flags(cpuinfo: Path) -> frozenset[str]:
    """The first CPU's features; none where the file can't be read."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


def file_name(level: str) -> str:
    """Names the sources and flags, so that an old library is never taken for a new one."""
    digest = hashlib.sha256("\0".join((level, *_FLAGS)).encode())
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + source.read_bytes())
    return f"passes-{level}-{digest.hexdigest()[:16]}.so"


def find_library() -> Path:
    """The library for this CPU: the bundled one, the cached one, or one that is compiled now.

    Raises:
        NativeError: there is none and it can't be compiled.
    """
    level = best_level()
    name = file_name(level)
    cached = _cache() / name
    for path in (BUNDLED / name, cached):
        if path.is_file():
            return path
    compile_library(cached, level)
    return cached


def compile_library(to: Path, level: str) -> None:
    """Compiles for `level` and puts the library at `to`, whole or not at all.

    Raises:
        NativeError: there is no compiler, it fails, or `to` can't be written.
    """
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
    if compiler is None:
        raise NativeError("no C++ compiler is installed; install g++ or set CXX")
    partial: Path | None = None
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        handle, text = tempfile.mkstemp(dir=to.parent, suffix=".so")
        os.close(handle)
        partial = Path(text)
        command = [compiler, *_FLAGS, f"-march={level}", "-o", str(partial), str(SOURCES / "library.cpp")]
        _log.info("compiling the native passes", extra={"level": level})
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S)
        partial.chmod(0o755)
        partial.replace(to)
    except subprocess.CalledProcessError as error:
        raise NativeError(f"{compiler} failed: {error.stderr.strip()[-500:]}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NativeError(f"the native passes could not be compiled into {to.parent}: {error}") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _cache() -> Path:
    root = os.environ.get("ZEROLAYER_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "zerolayer") / "native"


if __name__ == "__main__":
    for each in levels():
        compile_library(Path(sys.argv[1]) / file_name(each), each)
