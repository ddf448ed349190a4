"""A real registry of images on this machine, which keeps them in memory."""

import hashlib
import json
import re
import subprocess
from pathlib import Path

import httpx

from zerolayer_dev.cluster import binaries
from zerolayer_dev.testing.waiting import wait_for

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = b"{}"


class Registry:
    """The registry as a process: started, filled, stopped, started again at the same port, empty.

    Args:
        folder: where its log goes.
    """

    def __init__(self, folder: Path) -> None:
        self._program = binaries.ensure(["registry"])["registry"]
        self._log = folder / "registry.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    @property
    def host(self) -> str:
        """How images name it."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Starts it and waits until it answers."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([str(self._program), f"-port={self._port}"], stderr=log)
        said = wait_for(
            lambda: re.search(r"serving on port (\d+)", self._log.read_text(encoding="utf-8")),
            what=f"the registry to listen; its log is {self._log}",
            seconds=30,
        )
        self._port = int(str(said and said[1]))

    def stop(self) -> None:
        """Ends it; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=10)
            self._process = None

    def push(self, repository: str, tag: str, content: str) -> str:
        """Pushes an image without layers, and returns its digest.

        Args:
            repository: path inside the registry.
            tag: which from now on stands for this image.
            content: what sets the image apart from others.
        """
        annotations = {"org.opencontainers.image.description": content}
        config = {"mediaType": "application/vnd.oci.empty.v1+json", "size": len(_CONFIG)}
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": _MANIFEST,
                "config": {**config, "digest": f"sha256:{hashlib.sha256(_CONFIG).hexdigest()}"},
                "layers": [],
                "annotations": annotations,
            }
        ).encode()
        url = f"http://{self.host}/v2/{repository}/manifests/{tag}"
        answer = httpx.put(url, content=manifest, headers={"Content-Type": _MANIFEST}, trust_env=False)
        answer.raise_for_status()
        return f"sha256:{hashlib.sha256(manifest).hexdigest()}"
