"""Nodes that run pods in name only: each pod gets an address and is said to be ready while there is room."""

import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

import pykube

from zerolayer_dev.testing import kube
from zerolayer_dev.testing.fake_kubelet import ready_status
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.pools import POOL_LABEL, is_ready

_PAUSE_S: Final = 0.3


class SimulatedNodes:
    """Plays the kubelet for one namespace's workers for as long as the `with` block runs.

    Args:
        kubeconfig: Of the cluster's administrator.
        namespace: Whose pods it runs.
        start: Makes a worker of a pod, and returns its address.
        room: Pods that there is room for; the others stay pending.
    """

    def __init__(
        self, kubeconfig: Path, namespace: str, start: Callable[[Manifest], str], room: int = 1000
    ) -> None:
        self.room = room
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._start = start
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        api = kube.client(self._kubeconfig)
        while not self._ended.wait(_PAUSE_S):
            self._look(api)
        api.session.close()

    def _look(self, api: pykube.HTTPClient) -> None:
        found = pykube.Pod.objects(api).filter(namespace=self._namespace, selector=POOL_LABEL)
        pods = list(cast("Iterable[pykube.Pod]", found))
        running = sum(is_ready(pod.obj) for pod in pods)
        for pod in pods:
            if is_ready(pod.obj) or running >= self.room:
                continue
            try:
                status = ready_status(pod.obj, self._start(pod.obj))
                pod.patch({"status": status}, subresource="status")
            except pykube.exceptions.HTTPError as error:
                # A pod may have been deleted since it was listed.
                if error.code != HTTPStatus.NOT_FOUND:
                    raise
                continue
            running += 1
