import stat
from pathlib import Path

import pytest

from zerolayer_worker.models.native import build
from zerolayer_worker.models.native.build import (
    NativeError,
    best_level,
    compile_library,
    file_name,
    find_library,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "BUNDLED", tmp_path / "bundled")
    return tmp_path / "cache" / "native"


def compiler(tmp_path: Path, body: str) -> str:
    """A stand-in: a real one takes half a minute."""
    script = tmp_path / "cxx"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


WRITES_ARGUMENTS = 'while [ "$1" != -o ]; do shift; done; echo library > "$2"'


def test_it_is_compiled_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", compiler(tmp_path, WRITES_ARGUMENTS))
    path = find_library()
    assert path.read_text() == "library\n"
    assert list(cache.iterdir()) == [path]
    monkeypatch.setenv("CXX", compiler(tmp_path, "exit 1"))
    assert find_library() == path


def test_what_an_image_brought_along_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/cxx")
    bundled = tmp_path / "bundled" / file_name(best_level())
    bundled.parent.mkdir()
    bundled.write_text("")
    assert find_library() == bundled


def test_without_a_compiler_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NativeError, match="install g\\+\\+"):
        find_library()


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", compiler(tmp_path, "echo no such flag >&2; exit 3"))
    with pytest.raises(NativeError, match="no such flag"):
        find_library()
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", compiler(tmp_path, WRITES_ARGUMENTS))
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(NativeError, match="could not be compiled into"):
        find_library()


def test_the_name_changes_with_level_and_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = tmp_path / "csrc"
    sources.mkdir()
    (sources / "library.cpp").write_text("int x;")
    monkeypatch.setattr(build, "SOURCES", sources)
    names = {file_name("x86-64"), file_name("x86-64-v3")}
    (sources / "library.cpp").write_text("int y;")
    assert len(names | {file_name("x86-64")}) == 3


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ("fpu avx2 fma f16c bmi2 avx512f avx512bw avx512cd avx512dq avx512vl", "x86-64-v4"),
        ("fpu avx2 fma f16c bmi2 avx512f", "x86-64-v3"),
        ("fpu avx2 fma f16c bmi2", "x86-64-v3"),
        ("fpu avx2 fma", "x86-64"),
        ("", "x86-64"),
    ],
)
def test_the_level_is_the_best_that_the_cpu_has(tmp_path: Path, flags: str, level: str) -> None:
    if len(build.levels()) == 1:
        pytest.skip("this machine has one level only")
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor : 0\nflags : {flags}\n")
    assert best_level(cpuinfo) == level
    assert best_level(tmp_path / "missing") == "x86-64"


def test_a_real_compiler_gives_a_library_for_every_level(tmp_path: Path) -> None:
    for level in build.levels():
        compile_library(tmp_path / f"{level}.so", level)
        assert (tmp_path / f"{level}.so").read_bytes().startswith(b"\x7fELF")
