import pytest

from zerolayer_dev.images.requirements import Requirement, difference, join, parse, render, without_gpu
from zerolayer_dev.paths import repo_root

EXPORTED = """\
numpy==2.4.6 ; python_full_version < '3.12' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
numpy==2.5.5 ; python_full_version >= '3.12' \\
    --hash=sha256:cc
torch==2.15.0 \\
    --hash=sha256:dd
"""


def test_an_export_falls_apart_into_packages_and_comes_together_again() -> None:
    requirements = parse(EXPORTED)

    assert [requirement.name for requirement in requirements] == ["numpy", "numpy", "torch"]
    assert join(requirements).endswith(EXPORTED)


def test_difference_drops_every_version_of_a_name() -> None:
    requirements = parse(EXPORTED)

    assert [item.name for item in difference(requirements, requirements[:1])] == ["torch"]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("torch", True),
        ("sympy", True),
        ("nvidia-cuda-runtime", True),
        ("nvidia-cuda-nvrtc", False),
        ("nvidia-cudnn-cu13", False),
        ("cuda-bindings", False),
        ("cuda-toolkit", False),
        ("triton", False),
    ],
)
def test_a_cpu_image_leaves_out_what_only_a_gpu_uses(name: str, *, kept: bool) -> None:
    assert bool(without_gpu([Requirement(name, "")])) is kept


def names(text: str) -> set[str]:
    return {requirement.name for requirement in parse(text)}


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return render(repo_root())


def test_the_requirements_files_are_what_the_lock_says(files: dict[str, str]) -> None:
    stale = [name for name, text in files.items() if (repo_root() / name).read_text() != text]

    assert not stale, "run `make generate`"


def test_every_package_is_pinned_by_hash(files: dict[str, str]) -> None:
    for name, text in files.items():
        assert parse(text), name
        assert all("--hash=sha256:" in requirement.lines for requirement in parse(text)), name


def test_the_operator_needs_no_torch(files: dict[str, str]) -> None:
    operator = names(files["operator/requirements.lock"])

    assert {"kopf", "kubernetes", "pydantic"} <= operator
    assert not {
        name for name in operator if name in ("torch", "numpy", "triton") or name.startswith("nvidia")
    }


def test_torch_and_the_other_packages_of_the_worker_are_apart_and_complete(files: dict[str, str]) -> None:
    packages = names(files["worker/requirements.lock"])
    cpu = names(files["worker/requirements-torch-cpu.lock"])
    gpu = names(files["worker/requirements-torch-gpu.lock"])

    assert not packages & gpu
    assert {"tokenizers", "safetensors", "numpy", "jinja2", "typing-extensions"} <= packages
    assert {"torch", "sympy", "networkx", "nvidia-cuda-runtime"} <= cpu < gpu
    assert {"triton", "nvidia-cublas", "nvidia-cudnn-cu13", "nvidia-nccl-cu13"} <= gpu - cpu
