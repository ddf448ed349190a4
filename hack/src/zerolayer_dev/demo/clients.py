"""A light load: clients that ask anew each time, and conversations that repeat the revision they got."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx

from zerolayer_dev.testing.askers import Answer, Question, ask

TURNS = 6
"""Of one conversation."""

_TIMEOUT = httpx.Timeout(120, connect=10)


@dataclass(slots=True)
class Clients:
    """Clients that ask, wait and ask again for as long as the context lasts.

    Attributes:
        url: Where they ask.
        question: What.
        strangers: How many name no revision.
        talkers: How many hold one conversation after another, and name the revision that answered last.
        pause_s: Seconds between an answer and the next request.
        unpinned: What became of the former's requests.
        held: The same of the latter's, by conversation.
    """

    url: str
    question: Question
    strangers: int = 3
    talkers: int = 2
    pause_s: float = 0.5
    unpinned: list[Answer] = field(default_factory=list[Answer])
    held: list[list[Answer]] = field(default_factory=list[list[Answer]])
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread])

    def __enter__(self) -> Self:
        """Starts them."""
        for target, count in ((self._ask_on, self.strangers), (self._talk_on, self.talkers)):
            self._threads += [threading.Thread(target=target, args=(place,)) for place in range(count)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets each of them end its present request."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def answers(self) -> Sequence[Answer]:
        """Everything that was asked."""
        return [*self.unpinned, *(answer for turns in self.held for answer in turns)]

    def _ask_on(self, place: int) -> None:
        with self._client() as client:
            while not self._stop.is_set():
                self.unpinned.append(ask(client, self.question, stream=place % 2 == 0))
                self._stop.wait(self.pause_s)

    def _talk_on(self, place: int) -> None:
        with self._client() as client:
            while not self._stop.is_set():
                self._talk(client, stream=place % 2 == 0)

    def _talk(self, client: httpx.Client, *, stream: bool) -> None:
        turns: list[Answer] = []
        self.held.append(turns)
        headers: dict[str, str] = {}
        while len(turns) < TURNS and not self._stop.is_set():
            turns.append(ask(client, self.question, stream=stream, headers=headers))
            if turns[-1].revision:
                headers = {"zero-layer-revision": turns[-1].revision}
            self._stop.wait(self.pause_s)

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=_TIMEOUT, trust_env=False)
