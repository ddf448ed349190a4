"""An operator that is killed at calls of its own, and starts again."""

import re
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import httpx

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.testing.account import Account
from zerolayer_dev.testing.background import in_background
from zerolayer_dev.testing.fatal_proxy import Call, FatalProxy, Moment
from zerolayer_dev.testing.fault_points import NoCall
from zerolayer_dev.testing.quick_operator import QuickOperator
from zerolayer_dev.testing.waiting import wait_for

_QUIET_S = 4.0
"""Longer than any time that an update of these tests waits for."""

_LOOKS = 4
"""Looks of one life, about one a second: an operator that only starts has nothing to write either."""


class Points(Protocol):
    """Calls that are fatal, once they are armed."""

    armed: bool

    def is_fatal(self, call: Call, moment: Moment, *, alive: bool = True) -> bool:
        """Whether the operator dies now; `alive` as `fatal_proxy` has it."""
        ...


class StruckOperator:
    """An operator for the pools of one namespace that goes by a proxy, which kills it.

    Args:
        cluster: where the pools are.
        account: whose rights it has.
        folder: for its credentials and its log.
        look: called each time that it is dead, before it starts again: nothing moves meanwhile but pods.
        settings: of the operator.

    Attributes:
        points: calls that are fatal; none at first.
        process: the operator.
        kills: how often it was killed.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        account: Account,
        folder: Path,
        look: Callable[[], None] = lambda: None,
        **settings: object,
    ) -> None:
        self.points: Points = NoCall()
        self.process: QuickOperator
        self.kills = 0
        self._account, self._folder, self._look = account, folder, look
        place = {"namespaces": account.namespace, "pod_namespace": account.namespace}
        own = {"lease_name": account.name, "resync_interval_s": 1, "page": False}
        self._settings: dict[str, Any] = place | own | settings
        self._direct, self._kubeconfig = folder / "direct", folder / "kubeconfig"
        self._proxy = FatalProxy(cluster.kubeconfig, self._is_fatal, self._strike)
        # A life ends and begins in the proxy's thread, while a test asks for it in another.
        self._striking = threading.Lock()
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        """Starts it, and waits until it leads."""
        with ExitStack() as ending:
            ending.enter_context(in_background(self._proxy.serve()))
            self._account.kubeconfig(self._direct)
            self.process = QuickOperator(self._kubeconfig, self._folder, "struck", **self._settings)
            ending.callback(self.process.close)
            self._begin_life()
            self.process.wait_role("leading")
            self._ending = ending.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends it."""
        self._ending.close()

    def wait_quiet(self, *, seconds: float) -> None:
        """Waits until it has looked at its pools some times and found nothing to write.

        Raises:
            StillWaitingError: it has, after so many seconds.
            RuntimeError: it has ended of itself.
            Exception: what went wrong in the proxy.
        """
        wait_for(
            lambda: self._is_well() and self._proxy.idle_s > _QUIET_S and self._looks() >= _LOOKS,
            what="the operator to have nothing to write",
            seconds=seconds,
        )

    def _is_well(self) -> bool:
        if self._proxy.failures:
            raise self._proxy.failures[0]
        with self._striking:
            if not self.process.running:
                raise RuntimeError(f"the operator has ended; its log ends with {self.process.log()[-2000:]}")
        return True

    def _looks(self) -> int:
        """How often it has looked at a pool since it began; 0 while it does not tell."""
        try:
            told = self.process.metrics()
        except httpx.HTTPError:
            return 0
        found = re.search(r'reconciles_total\{result="ok"\} (\d+)', told)
        return int(found[1]) if found else 0

    def _is_fatal(self, call: Call, moment: Moment, *, alive: bool) -> bool:
        return self.points.is_fatal(call, moment, alive=alive)

    def _strike(self) -> None:
        with self._striking:
            self.process.kill()
            self.kills += 1
            try:
                self._look()
            finally:
                self._begin_life()

    def _begin_life(self) -> None:
        self._proxy.begin_life(self._direct, self._kubeconfig)
        self.process.start()
