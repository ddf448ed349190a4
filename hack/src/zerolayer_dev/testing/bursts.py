"""Clients that ask all at once and then leave a pause, in which workers ask deterministic requests again."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import httpx

from zerolayer_dev.testing.askers import Answer, Question, ask
from zerolayer_dev.testing.waiting import wait_for

_TIMEOUT: Final = httpx.Timeout(120, connect=10)


@dataclass(slots=True)
class Bursts:
    """Bursts of requests for as long as the context lasts, each on a connection of its own.

    Attributes:
        url: Where they ask.
        question: What; every second request is for a stream.
        size: Requests in a burst.
        pause_s: Seconds from the last answer of one burst to the next burst.
    """

    url: str
    question: Question
    size: int = 12
    pause_s: float = 2.0
    answers: list[Answer] = field(default_factory=list[Answer])
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Begins."""
        self._thread = threading.Thread(target=self._run, name="bursts")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets the last burst end."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def wait_for_more(self, count: int, *, seconds: float) -> None:
        """Waits until so many more answers came."""
        wanted = len(self.answers) + count
        wait_for(lambda: len(self.answers) >= wanted, what=f"{count} more answers", seconds=seconds)

    def _run(self) -> None:
        with ThreadPoolExecutor(self.size) as clients:
            while not self._stop.is_set():
                self.answers += clients.map(self._ask, range(self.size))
                self._stop.wait(self.pause_s)

    def _ask(self, number: int) -> Answer:
        with httpx.Client(base_url=self.url, timeout=_TIMEOUT, trust_env=False) as client:
            return ask(client, self.question, stream=number % 2 == 0)
