"""The requirements files that the Dockerfiles install from: hashed, and cut out of `uv.lock`.

The worker's come in two parts, because torch has an image layer of its own that must not change with the
other packages; and torch's in two variants, because most of it serves GPUs only.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "# Made from uv.lock by `make generate`; do not edit.\n"

# torch from PyPI is linked to these; `worker/image/stub_cuda.py` stands in for their libraries where there
# is no GPU. `nvidia-cuda-runtime` stays: it is what tells torch that there is none.
_GPU_ONLY = re.compile(r"triton|cuda-.*|nvidia-(?!cuda-runtime$).*")


class Requirement(NamedTuple):
    """One pinned package: its name, and its lines with marker and hashes."""

    name: str
    lines: str


def render(root: Path) -> dict[str, str]:
    """Returns the text of every requirements file by its path below `root`."""
    served = ("--package", "zerolayer-worker", "--extra", "otlp")
    worker = parse(_export(root, *served))
    without_torch = parse(_export(root, *served, "--prune", "torch"))
    torch = difference(worker, without_torch)
    build = parse(_export(root, "--only-group", "build"))
    return {
        "operator/requirements.lock": join(parse(_export(root, "--package", "zerolayer-operator"))),
        "operator/requirements-build.lock": join(build),
        "worker/requirements.lock": join(without_torch),
        "worker/requirements-torch-cpu.lock": join(without_gpu(torch)),
        "worker/requirements-torch-gpu.lock": join(torch),
        "worker/requirements-build.lock": join(build),
    }


def parse(text: str) -> list[Requirement]:
    """Split the output of `uv export` into its packages."""
    blocks = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return [Requirement(block.split("==")[0], block) for block in blocks if "==" in block]


def join(requirements: list[Requirement]) -> str:
    """Returns a requirements file."""
    return HEADER + "".join(requirement.lines for requirement in requirements)


def difference(whole: list[Requirement], part: list[Requirement]) -> list[Requirement]:
    """Returns what `whole` has and `part` has not."""
    names = {requirement.name for requirement in part}
    return [requirement for requirement in whole if requirement.name not in names]


def without_gpu(requirements: list[Requirement]) -> list[Requirement]:
    """Returns the packages that torch needs on a machine without a GPU."""
    return [requirement for requirement in requirements if not _GPU_ONLY.fullmatch(requirement.name)]


def _export(root: Path, *arguments: str) -> str:
    # `--frozen --offline`: what the lock says, whatever the package index says today.
    command = ["uv", "export", "--quiet", "--frozen", "--offline", "--no-header", "--no-annotate", "--no-dev",
               "--no-emit-workspace", *arguments]  # fmt: skip
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return done.stdout
