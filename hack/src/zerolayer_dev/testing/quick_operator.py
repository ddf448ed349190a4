"""An operator that is killed over and over: it begins to work within a fraction of a second."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from zerolayer_dev.testing.operator_process import OperatorProcess

_END_S = 10


class QuickOperator(OperatorProcess):
    """One replica whose process is a fork of one that has imported everything; see `operator_nursery`.

    Args:
        kubeconfig: what it connects with.
        folder: where its log goes.
        name: the name by which it holds the Lease: started again, it goes on with it at once.
        settings: its settings by field name.
    """

    def __init__(self, kubeconfig: Path, folder: Path, name: str, **settings: object) -> None:
        super().__init__(kubeconfig, folder, name, **settings)
        with self._log.open("ab") as log:
            self._nursery = subprocess.Popen(
                [sys.executable, "-m", "zerolayer_dev.testing.operator_nursery"],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
            )
        self._life: int | None = None

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._life is not None and not select.select([self._life], [], [], 0)[0]

    def start(self) -> None:
        """Starts it; its log is appended to.

        Raises:
            RuntimeError: what it is a fork of has ended.
        """
        if self._nursery.stdin is None or self._nursery.stdout is None:
            raise RuntimeError("no pipes")
        self._nursery.stdin.write("\n")
        pid = self._nursery.stdout.readline()
        if not pid:
            raise RuntimeError(f"no operator any more; its log ends with {self.log()[-2000:]}")
        self._life = os.pidfd_open(int(pid))

    def kill(self) -> None:
        """Ends it with SIGKILL, at whatever point it is; nothing happens if it does not run.

        Raises:
            TimeoutError: it does not end.
        """
        if self._life is None:
            return
        if self.running:
            signal.pidfd_send_signal(self._life, signal.SIGKILL)
        if not select.select([self._life], [], [], _END_S)[0]:
            raise TimeoutError(f"{self.name} outlives SIGKILL")
        os.close(self._life)
        self._life = None

    def close(self) -> None:
        """Ends it for good."""
        self.kill()
        self._nursery.kill()
        self._nursery.communicate()
