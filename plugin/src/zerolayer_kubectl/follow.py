"""Following a pool by watches: every change, and a look at the clock in between."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from zerolayer_kubectl.fields import Object, part, text
from zerolayer_kubectl.kubectl import DEPLOYMENTS, POOLS, Kubectl, KubectlError, changes, failure
from zerolayer_kubectl.pool import LABEL_POOL, Pool, read

if TYPE_CHECKING:
    import subprocess

_PAUSE_S: Final = 2.0
"""Before a watch that ended begins anew."""

_LOOK_S: Final = 5.0
"""Between two looks whether the pool is there: no watch of a list tells of what went before it began."""

_QUIET_S: Final = 0.1
"""One change of a pool comes as several events; when there was none for so long, it is complete."""

_ANEW: Final = "ANEW"
"""Stands for a watch of Deployments that begins anew, which does not tell of those that went meanwhile."""

_Item = tuple[str, Object | KubectlError]


class TimedOutError(Exception):
    """It took longer than the user wants to wait."""


class Follower:
    """Watches a pool and the Deployments of its revisions, for as long as it is open.

    Args:
        kubectl: Reaches the cluster.
        name: The pool's.
        tell: Gets what goes wrong for a while.
    """

    def __init__(self, kubectl: Kubectl, name: str, tell: Callable[[str], None]) -> None:
        self._kubectl = kubectl
        self._name = name
        self._tell = tell
        self._found: queue.Queue[_Item] = queue.Queue()
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._threads: list[threading.Thread] = []
        self._closed = threading.Event()
        self._troubled: str | None = None
        self._body = kubectl.pool(name)
        deployments = kubectl.deployments(name)
        self._deployments = None if deployments is None else {_name(item): item for item in deployments}

    def __enter__(self) -> Self:
        # A watch of the one pool by its name would begin wherever the API server's cache is, and now and then
        # loses a change made at that moment; one of a list begins where the list ends.
        self._start(POOLS, f"--field-selector=metadata.name={self._name}")
        if self._deployments is not None:
            self._start(DEPLOYMENTS, f"--selector={LABEL_POOL}={self._name}")
        self._run(self._look_for_pool)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        for process in list(self._running.values()):
            process.terminate()
        for thread in self._threads:
            thread.join(_PAUSE_S)

    def looks(self, tick_s: float, limit_s: float | None = None) -> Iterator[Pool]:
        """The pool as it is now, at each change, and each time that so many seconds have passed.

        Raises:
            KubectlError: The pool is gone, or must not be read any more.
            TimedOutError: `limit_s` have passed.
        """
        ends = None if limit_s is None else time.monotonic() + limit_s
        while True:
            yield read(self._body, None if self._deployments is None else self._deployments.values())
            left = tick_s if ends is None else min(tick_s, ends - time.monotonic())
            if left <= 0:
                raise TimedOutError
            self._take(left)

    def _take(self, seconds: float) -> None:
        """Waits so long for a change, and takes in what comes with it."""
        with contextlib.suppress(queue.Empty):
            self._heed(*self._found.get(timeout=seconds))
            while True:
                self._heed(*self._found.get(timeout=_QUIET_S))

    def _heed(self, kind: str, found: Object | KubectlError) -> None:
        if isinstance(found, KubectlError):
            if found.lasting and kind == POOLS:
                raise self._deleted() if found.missing else found
            if str(found) != self._troubled:
                self._troubled = str(found)
                self._tell(self._troubled)
            return
        self._troubled = None
        if text(found, "type") == _ANEW:
            self._deployments = {}
            return
        gone = text(found, "type") == "DELETED"
        body = part(found, "object")
        if kind == POOLS:
            if gone:
                raise self._deleted()
            self._body = body
        elif self._deployments is not None:
            self._deployments.pop(_name(body), None)
            if not gone:
                self._deployments[_name(body)] = body

    def _deleted(self) -> KubectlError:
        return KubectlError(f"pool {self._name} has been deleted", lasting=True, missing=True)

    def _start(self, kind: str, *arguments: str) -> None:
        self._run(self._watch, kind, *arguments)

    def _run(self, task: Callable[..., None], *arguments: str) -> None:
        thread = threading.Thread(target=task, args=arguments, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _watch(self, kind: str, *arguments: str) -> None:
        while not self._closed.is_set():
            with self._kubectl.watching(kind, *arguments) as process:
                self._running[kind] = process
                if self._closed.is_set():  # closed while it started: nobody else ends it
                    process.terminate()
                self._read(kind, process)
            self._closed.wait(_PAUSE_S)

    def _look_for_pool(self) -> None:
        while not self._closed.wait(_LOOK_S):
            try:
                self._kubectl.pool(self._name)
            except KubectlError as error:
                # Of other trouble the watch tells; and what it tells of the pool is never older than this.
                if error.missing:
                    self._found.put((POOLS, error))

    def _read(self, kind: str, process: "subprocess.Popen[str]") -> None:
        if process.stdout is None or process.stderr is None:
            return
        try:
            for index, found in enumerate(changes(process.stdout)):
                if kind == DEPLOYMENTS and index == 0:
                    self._found.put((kind, {"type": _ANEW}))
                self._found.put((kind, found))
        except KubectlError as error:
            self._found.put((kind, error))
            process.kill()
            return
        said = process.stderr.read()
        if process.wait() and not self._closed.is_set():
            self._found.put((kind, failure(said)))


def _name(body: Object) -> str:
    return text(part(body, "metadata"), "name") or ""
