# ruff: noqa: INP001 - a script of the image build, no package
"""Stands in for the CUDA libraries that torch links to, so that a CPU image need not hold them.

The wheel of torch on PyPI is built for CUDA: the dynamic loader wants some four gigabytes of NVIDIA's
libraries before `import torch` succeeds, though nothing in them runs where there is no GPU. This script
reads from torch's own files which of their symbols, in which versions, the loader will ask for, and makes
small libraries that have exactly those. A stub that is called nevertheless returns an error status, which
torch raises as an exception. `libcudart` is not replaced: it answers that there is no GPU.

Needs `as`, `ld` (binutils) and pyelftools. Usage: stub_cuda.py TORCH_LIB_DIR
"""

import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection

# Two functions for each machine: one returns status 1, the other the address of `message`.
CODE = {
    "x86_64": ("mov $1, %eax\nret", "lea message(%rip), %rax\nret"),
    "aarch64": ("mov w0, #1\nret", "adrp x0, message\nadd x0, x0, :lo12:message\nret"),
}
MESSAGE = "this image holds no CUDA libraries"
PREFIXES = {
    "libcublas": "cublas",
    "libcublasLt": "cublasLt",
    "libcudnn": "cudnn",
    "libcufft": "cufft",
    "libcufile": "cuFile",
    "libcupti": "cupti",
    "libcusolver": "cusolver",
    "libcusparse": "cusparse",
    "libcusparseLt": "cusparseLt",
    "libnccl": "nccl",
    "libnvrtc": "nvrtc",
    "libnvshmem_host": "nvshmem",
}


class Symbol(NamedTuple):
    """A symbol that a stub must have; `version` is empty where the real library versions none."""

    name: str
    version: str
    is_data: bool


def main(torch_lib: Path) -> None:
    """Write a stub beside torch's libraries for every CUDA library that they need."""
    needed: dict[str, set[Symbol]] = defaultdict(set)
    for library in sorted(torch_lib.glob("*.so")):
        collect(library, needed)
    for soname, symbols in sorted(needed.items()):
        build_stub(torch_lib / soname, symbols)
        print(f"stub of {soname}: {len(symbols)} symbols")  # noqa: T201 - the build log is all it has


def collect(library: Path, needed: dict[str, set[Symbol]]) -> None:
    """Add the CUDA symbols that `library` leaves undefined to those of the library they come from."""
    with library.open("rb") as file:
        elf = ELFFile(file)
        stubbed = [
            tag.needed
            for section in elf.iter_sections()
            if isinstance(section, DynamicSection)
            for tag in section.iter_tags("DT_NEEDED")
            if stem(tag.needed) in PREFIXES
        ]
        versions = version_table(elf)
        indexes = next(s for s in elf.iter_sections() if isinstance(s, GNUVerSymSection))
        table = elf.get_section_by_name(".dynsym")
        for soname in stubbed:
            needed[soname]  # a library may be needed for no symbol at all
        for number, symbol in enumerate(table.iter_symbols()):
            if symbol["st_shndx"] != "SHN_UNDEF" or symbol["st_info"]["bind"] != "STB_GLOBAL":
                continue
            soname, version = versions.get(indexes.get_symbol(number)["ndx"], ("", ""))
            owner = soname or unversioned_owner(symbol.name, stubbed)
            if owner in stubbed:
                is_data = symbol["st_info"]["type"] == "STT_OBJECT"
                needed[owner].add(Symbol(symbol.name, version, is_data))


def version_table(elf: ELFFile) -> dict[int, tuple[str, str]]:
    """The library and version behind each version number that the file's symbols carry."""
    return {
        entry["vna_other"]: (need.name, entry.name)
        for section in elf.iter_sections()
        if isinstance(section, GNUVerNeedSection)
        for need, entries in section.iter_versions()
        for entry in entries
    }


def unversioned_owner(name: str, candidates: list[str]) -> str:
    """The library whose prefix fits `name` best, or nothing."""
    fitting = [soname for soname in candidates if name.startswith(PREFIXES[stem(soname)])]
    return max(fitting, key=lambda soname: len(PREFIXES[stem(soname)]), default="")


def stem(soname: str) -> str:
    """`libcublas` of `libcublas.so.13`."""
    return soname.partition(".")[0]


def build_stub(target: Path, symbols: set[Symbol]) -> None:
    """Assemble and link the library `target` with the given symbols."""
    with tempfile.TemporaryDirectory() as scratch:
        source, objects, script = (Path(scratch) / name for name in ("stub.s", "stub.o", "stub.map"))
        source.write_text(assembly(symbols))
        script.write_text(version_script(symbols))
        subprocess.run(["as", "-o", objects, source], check=True)
        versioned = any(symbol.version for symbol in symbols)
        options = [f"--version-script={script}"] if versioned else []
        subprocess.run(["ld", "-shared", "-soname", target.name, *options, "-o", target, objects], check=True)


def assembly(symbols: set[Symbol]) -> str:
    """All functions at one of two addresses, all data in one block of zeros."""
    status, text = CODE[platform.machine()]
    functions = [symbol.name for symbol in symbols if not symbol.is_data]
    texts = {name for name in functions if returns_text(name)}
    data = sorted(symbol.name for symbol in symbols if symbol.is_data)
    lines = [".text"]
    lines += [*labels(sorted(set(functions) - texts), "function"), status]
    lines += [*labels(sorted(texts), "function"), text]
    lines += [".data", ".balign 64", *labels(data, "object"), ".zero 256"]
    lines += [".section .rodata", f'message: .asciz "{MESSAGE}"', '.section .note.GNU-stack,"",%progbits', ""]
    return "\n".join(lines)


def labels(names: list[str], kind: str) -> list[str]:
    """A global label of the given kind for every name."""
    return [f".globl {name}\n.type {name}, %{kind}\n{name}:" for name in names]


def returns_text(name: str) -> bool:
    """Whether the function returns a string, as the libraries name them: ncclGetErrorString."""
    return name.endswith(("String", "LastError", "ErrorName"))


def version_script(symbols: set[Symbol]) -> str:
    """The linker's version script that puts every versioned symbol into its version."""
    versions: dict[str, list[str]] = defaultdict(list)
    for symbol in sorted(symbols):
        if symbol.version:
            versions[symbol.version].append(symbol.name)
    return "".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in versions.items())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
