"""The project's images: where each Dockerfile is and what goes into it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zerolayer_dev.cluster.binaries import ensure
from zerolayer_dev.images.inputs import Inputs, select
from zerolayer_dev.models.builtin import NAME as MODEL
from zerolayer_dev.models.builtin import model_dir

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

REGISTRY = "zerolayer.dev"


@dataclass(frozen=True)
class ImageSpec:
    """One image.

    Attributes:
        folder: Build context below the repository's root; holds the Dockerfile.
        files: Glob patterns of what the build reads there, beside the Dockerfile.
        with_model: The build context `models` holds the demo's model.
        binaries: Programs that lie beside the Dockerfile, by their names in `cluster.binaries`.
        build_args: Build arguments.
        heavy_stage: A stage of the Dockerfile that is built once and kept, because it is large.
        light: Glob pattern of the files that the heavy stage does not read.
        by_default: Whether `--all` builds it.
    """

    folder: str
    files: tuple[str, ...] = ()
    with_model: bool = False
    binaries: tuple[str, ...] = ()
    build_args: Mapping[str, str] = field(default_factory=dict)
    heavy_stage: str = ""
    light: str = "src/*"
    by_default: bool = True

    def inputs(self, root: Path) -> Inputs:
        """Find the files of the build, making the model and the programs that are missing."""
        contexts = {"": select(root / self.folder, ("Dockerfile", *self.files)) | ensure(self.binaries)}
        if self.with_model:
            contexts["models"] = select(model_dir().parent, (f"{MODEL}/*",))
        return Inputs(contexts)


_WORKER_FILES = ("pyproject.toml", "requirements*.lock", "image/*", "src/**/*")

IMAGES: Mapping[str, ImageSpec] = {
    "operator": ImageSpec("operator", ("pyproject.toml", "requirements*.lock", "src/**/*")),
    "worker": ImageSpec("worker", _WORKER_FILES, with_model=True, heavy_stage="runtime"),
    "worker-gpu": ImageSpec(
        "worker",
        _WORKER_FILES,
        with_model=True,
        build_args={"VARIANT": "gpu"},
        heavy_stage="runtime",
        by_default=False,
    ),
    "modelonly": ImageSpec("hack/images/modelonly", ("faults/*",), with_model=True),
    "pause": ImageSpec("hack/images/pause", binaries=("pause",)),
    "coredns": ImageSpec("hack/images/coredns", binaries=("coredns",)),
    "metrics-server": ImageSpec("hack/images/metrics-server", binaries=("metrics-server",)),
    "prometheus": ImageSpec("hack/images/prometheus", binaries=("prometheus",)),
}


def reference(name: str) -> str:
    """The image's full name, such as `zerolayer.dev/worker:dev`."""
    return f"{REGISTRY}/{name}:dev"
