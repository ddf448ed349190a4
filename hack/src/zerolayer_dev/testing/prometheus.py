"""A real Prometheus on this machine, which scrapes what a test serves."""

import json
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from zerolayer_dev.cluster import binaries
from zerolayer_dev.testing.waiting import wait_for

_LISTENS: Final = re.compile(r'"Listening on".*?"address":"(127\.0\.0\.1:\d+)"')


class Prometheus:
    """Prometheus as a process: started, stopped in the middle of everything, continued, ended.

    Args:
        folder: Where its configuration, its data and its log go.
    """

    def __init__(self, folder: Path) -> None:
        self._program = binaries.ensure(["prometheus"])["prometheus"]
        self._folder = folder
        self._log = folder / "prometheus.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""

    @property
    def url(self) -> str:
        """Where it is asked."""
        return f"http://{self._address}"

    def start(self, targets: Mapping[str, Mapping[str, str]], interval: str) -> None:
        """Starts it and waits until it answers.

        Args:
            targets: Addresses to scrape, `host:port`, each with the labels of its series.
            interval: Between two scrapes of a target, such as `100ms`.
        """
        static = [{"targets": [address], "labels": dict(labels)} for address, labels in targets.items()]
        self.start_with(
            {
                "global": {"scrape_interval": interval, "scrape_timeout": interval},
                # One target may tell the series of several workers.
                "scrape_configs": [{"job_name": "test", "honor_labels": True, "static_configs": static}],
            }
        )

    def start_with(self, configuration: Mapping[str, Any]) -> None:
        """Starts it with a configuration and waits until it answers."""
        path = self._folder / "prometheus.yml"
        path.write_text(json.dumps(configuration))
        arguments = (
            f"--config.file={path}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            "--web.listen-address=127.0.0.1:0",
            "--log.format=json",
        )
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([str(self._program), *arguments], stderr=log)
        what = f"Prometheus to listen; its log is {self._log}"
        # It says the two in either order.
        wait_for(lambda: "Server is ready" in self._text(), what=what, seconds=60)
        said = wait_for(lambda: _LISTENS.search(self._text()), what=what, seconds=60)
        self._address = str(said and said[1])

    def value(self, query: str) -> float | None:
        """The value of a query that has at most one; ``None`` where it has none."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, timeout=10).json()
        found = answer["data"]["result"]
        return float(found[0]["value"][1]) if found else None

    def freeze(self) -> None:
        """Has it do nothing: connections to it are made, and never answered."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets it go on."""
        self._running().send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends it; nothing happens if it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("Prometheus does not run")
        return self._process

    def _text(self) -> str:
        return self._log.read_text(encoding="utf-8")
