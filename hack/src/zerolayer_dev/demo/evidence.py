"""What tells why a demo failed: logs of gateway, workers and operator, and the requests that failed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pykube
import requests

from zerolayer_dev.testing.askers import Answer
from zerolayer_dev.testing.background import repeated
from zerolayer_dev.testing.gateway import Gateway
from zerolayer_dev.testing.kube import objects
from zerolayer_dev.testing.pools import POOL_LABEL, Pool

LOG_BYTES = 64 * 1024
"""What is kept of one log, its end."""

LINE_CHARS = 1000
"""Of one line; Traefik writes its whole configuration into one."""

MOST_FAILURES = 50

_UNREAD = (requests.RequestException, pykube.exceptions.PyKubeError)
_INTERVAL_S = 2.0
_LINES = 300
_OPERATOR = ("zerolayer-system", {"app.kubernetes.io/name": "zerolayer-operator"})


class Logs:
    """The logs of a pool's pods; those of a deleted one go with it, so they are looked at again and again.

    Args:
        pool: whose.
    """

    def __init__(self, pool: Pool) -> None:
        self._api = pool.api
        self._of_pool = (pool.namespace, {POOL_LABEL: pool.name})
        self._seen: dict[str, str] = {}

    def look(self) -> None:
        """Reads them as they are now."""
        self._look(*self._of_pool)

    def read(self) -> Mapping[str, str]:
        """What each pod said last, those of the pool that are gone included, and the operator's."""
        self.look()
        self._look(*_OPERATOR)
        return dict(self._seen)

    def _look(self, namespace: str, labels: Mapping[str, str]) -> None:
        """Evidence is for when things go wrong: what can't be read is said, and breaks nothing."""
        try:
            found = objects(self._api, pykube.Pod, namespace=namespace, selector=labels)
        except _UNREAD as error:
            self._seen[f"pods of {namespace}"] = repr(error)
            return
        for pod in found:
            self._read(pykube.Pod(self._api, pod))

    def _read(self, pod: pykube.Pod) -> None:
        try:
            self._seen[f"pod {pod.name}"] = pod.logs(timestamps=True, tail_lines=_LINES)
        except _UNREAD as error:
            self._seen.setdefault(f"pod {pod.name}", f"no log: {error!r}")


@contextmanager
def noted(gate: Gateway, pool: Pool, answers: Callable[[], Sequence[Answer]]) -> Iterator[None]:
    """Adds to an error, as a note, what tells why it came.

    Args:
        gate: through which the pool is asked.
        pool: that is asked.
        answers: returns those to all that was asked.
    """
    logs = Logs(pool)
    with repeated(logs.look, every_s=_INTERVAL_S, name="logs"):
        try:
            yield
        except Exception as error:
            found = {"Traefik": "\n".join(gate.lines()), **logs.read()}
            error.add_note(text(answers(), found))
            raise


def text(answers: Iterable[Answer], logs: Mapping[str, str]) -> str:
    """Writes it down, requests first."""
    return "\n\n".join(["\n".join(failures(answers)), *(_log(*log) for log in logs.items())])


def failures(answers: Iterable[Answer]) -> Iterator[str]:
    """Says of each request that failed who answered, when it began, and how long it took."""
    asked = sorted(answers, key=lambda answer: answer.began)
    failed = [answer for answer in asked if answer.failure]
    yield f"==== {len(failed)} of {len(asked)} requests failed"
    for answer in failed[:MOST_FAILURES]:
        began, took = answer.began - asked[0].began, answer.ended - answer.began
        yield (
            f"{answer.request_id or 'no id'}, revision {answer.revision or 'unknown'}: "
            f"began at {began:.1f} s, took {took:.1f} s: {answer.failure}"
        )


def _log(name: str, said: str) -> str:
    lines = (line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]} …" for line in said.splitlines())
    return f"==== {name}\n" + "\n".join(lines)[-LOG_BYTES:]
