"""The real `zerolayer-operator` as a process on this machine, aimed at a cluster."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx

from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.ports import free_port
from zerolayer_dev.testing.waiting import wait_for


class OperatorProcess:
    """One replica of the operator: started, killed, started again, read.

    Args:
        kubeconfig: what it connects with.
        folder: where its log goes.
        name: the name by which it holds the Lease.
        settings: its settings by field name, as `resync_interval_s=1`.
    """

    def __init__(self, kubeconfig: Path, folder: Path, name: str, **settings: object) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        self._health_port, self._metrics_port, self.page_port = free_port(), free_port(), free_port()
        own: dict[str, object] = {
            "pod_name": name,
            "worker_image": "zerolayer.dev/worker:test",
            "bind_host": "127.0.0.1",
            "health_port": self._health_port,
            "metrics_port": self._metrics_port,
            "page_port": self.page_port,
        }
        self._environment = {
            "PATH": os.environ["PATH"],
            "KUBECONFIG": str(kubeconfig),
            **{f"ZEROLAYER_{key.upper()}": str(value) for key, value in (own | settings).items()},
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process that was started last."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._process

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts it; its log is appended to."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(Path(sys.executable).with_name("zerolayer-operator"))],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Ends it with SIGKILL, at whatever point it is."""
        self.process.kill()
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """Ends it as Kubernetes does, with SIGTERM, and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def probe(self, path: str) -> tuple[int, dict[str, Any]]:
        """Asks for `/healthz` or `/readyz`; status 0 where nobody answers."""
        try:
            answer = httpx.get(f"http://127.0.0.1:{self._health_port}{path}", timeout=5)
        except httpx.HTTPError:
            return 0, {}
        return answer.status_code, answer.json()

    def ping(self) -> None:
        """Has its event loop answer, at the least expense for whoever asks.

        Raises:
            OSError: It does not within half a minute.
        """
        connection = HTTPConnection("127.0.0.1", self._health_port, timeout=30)
        try:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        finally:
            connection.close()

    def wait_role(self, role: str, *, seconds: float = 30) -> None:
        """Waits until it is ready in a role: `standby` or `leading`."""
        wait_for(
            lambda: self.probe("/readyz"),
            until=lambda seen: seen[0] == httpx.codes.OK and seen[1]["role"] == role,
            what=f"{self.name} to be {role}; its log ends with {self.log()[-2000:]}",
            seconds=seconds,
        )

    def metrics(self) -> str:
        """What `/metrics` says."""
        return httpx.get(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=5).text

    def resident_bytes(self) -> int:
        """Memory that the process holds at the moment."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def log(self) -> str:
        """All that it ever logged."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    def records(self, *levels: str) -> list[dict[str, Any]]:
        """Its log records of some levels, or all of them; a line that is no record is an error."""
        records = [json.loads(line) for line in self.log().splitlines()]
        return [record for record in records if not levels or record["level"] in levels]


@contextmanager
def replicas(account: Account, folder: Path, **own: object) -> Iterator[Callable[..., OperatorProcess]]:
    """Starts replicas for an account's namespace alone, `start("name", setting=value)`; kills all at the end.

    Args:
        account: whose rights they have, and whose name their Lease has.
        folder: where their logs go.
        own: settings of each of them.
    """
    kubeconfig = account.kubeconfig(folder / "kubeconfig")
    place = {
        "namespaces": account.namespace,
        "pod_namespace": account.namespace,
        "lease_name": account.name,
    }
    started: list[OperatorProcess] = []

    def start(name: str, **settings: object) -> OperatorProcess:
        process = OperatorProcess(kubeconfig, folder, name, **(place | own | settings))
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        if process.running:
            process.kill()
