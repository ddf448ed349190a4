"""Builds images without a container engine, in a store of its own in the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from zerolayer_dev.cluster.prerequisites import IMAGES as PREREQUISITES
from zerolayer_dev.cluster.prerequisites import require
from zerolayer_dev.images import base
from zerolayer_dev.images.archive import LayerPool, collect, prepare_layout
from zerolayer_dev.images.progress import run
from zerolayer_dev.paths import cache_dir

if TYPE_CHECKING:
    from zerolayer_dev.images.engines import HeavyStage, Request

# Builds find the machine's certificates here. Mounted, never copied: whom this machine trusts is no part of
# an image. The folder exists in the base image, so the mount leaves no trace in it.
_MOUNT = "/mnt"
_CERTIFICATES = "certificates.crt"


class Buildah:
    """Builds without a container engine.

    Raises:
        MissingPrerequisitesError: The machine lacks buildah, mmdebstrap or root.
    """

    def __init__(self) -> None:
        require(*PREREQUISITES)
        self.home = cache_dir() / "buildah"
        self.home.mkdir(parents=True, exist_ok=True)
        self.base_key = base.key()
        self.pool = LayerPool(self.home / "layers")

    def build(self, request: Request) -> None:
        """See `Engine`; makes the base image and the heavy stage first where they are missing."""
        if request.reference != base.REFERENCE:
            base.ensure(self)
        replaced = self._heavy(request, request.heavy) if request.heavy else []
        self._build(request, replaced)

    def _heavy(self, request: Request, stage: HeavyStage) -> list[str]:
        """The options that put the image of the heavy stage in the stage's place."""
        reference = f"localhost/{request.label}-{stage.name}:{stage.key}"
        if not self.output("images", "--quiet", "--filter", f"reference={reference}").strip():
            label = f"{request.label}-{stage.name}"
            self._build(replace(request, label=label, reference=reference), ["--target", stage.name])
        return ["--build-context", f"{stage.name}=container-image://{reference}"]

    def _build(self, request: Request, further: list[str]) -> None:
        options = [
            "--isolation",
            "chroot",
            "--layers",
            "--force-rm",
            "--pull-never",
            *request.options(),
            *further,
        ]
        options += self._certificates()
        command = [*self._command("build"), *options, "--tag", request.reference]
        run(request.label, [*command, request.contexts[""]], self._log(request))

    def save(self, request: Request, archive: Path) -> None:
        """See `Engine`; compresses only layers that no archive had before."""
        inspected = json.loads(self.output("inspect", "--type", "image", request.reference))
        diff_ids = [digest.removeprefix("sha256:") for digest in inspected["OCIv1"]["rootfs"]["diff_ids"]]
        with tempfile.TemporaryDirectory(dir=self.home) as scratch:
            layout = Path(scratch)
            prepare_layout(layout, self.pool, diff_ids)
            compressed = ["--compression-format", "zstd", "--compression-level", "1"]
            command = self._command(
                "push", *compressed, request.reference, f"oci:{layout}:{request.reference}"
            )
            run(request.label, command, self._log(request))
            collect(layout, self.pool, diff_ids, request.reference, archive)

    def output(self, *arguments: str) -> str:
        """Run buildah and return what it prints."""
        done = subprocess.run(self._command(*arguments), check=True, capture_output=True, text=True)
        return done.stdout

    def _command(self, *arguments: str) -> list[str]:
        store = ["--root", str(self.home / "storage"), "--runroot", str(self.home / "run")]
        return ["buildah", *store, "--storage-driver", "overlay", *arguments]

    def _certificates(self) -> list[str]:
        trusted = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
        if not trusted.exists():
            return []
        folder = self.home / "certificates"
        folder.mkdir(exist_ok=True)
        shutil.copyfile(trusted, folder / _CERTIFICATES)
        return ["--volume", f"{folder}:{_MOUNT}:ro", "--build-arg", f"PIP_CERT={_MOUNT}/{_CERTIFICATES}"]

    def _log(self, request: Request) -> Path:
        return self.home / "logs" / f"{request.label}.log"
