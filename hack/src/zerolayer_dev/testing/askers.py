"""Clients of a pool that is updated: they note which revision answered, and whatever goes wrong."""

import itertools
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import httpx

from zerolayer_dev.testing.waiting import wait_for

REVISION: Final = "x-zero-layer-revision"
CHANGED: Final = "x-zero-layer-revision-changed"
ANCHOR: Final = "x-zero-layer-anchor"
REQUEST_ID: Final = "request-id"
_TIMEOUT: Final = httpx.Timeout(120, connect=10)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one request.

    Attributes:
        began: When it was sent, in monotonic seconds.
        ended: When the last of its answer came.
        revision: That answered, or began to, by its own account.
        anchor: Version that it named.
        changed: Whether it said that the request named another revision.
        failure: What went wrong; empty where the answer is whole.
        request_id: Which the worker gave the request.
    """

    began: float
    ended: float
    revision: str = ""
    anchor: str = ""
    changed: bool = False
    failure: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and of which model."""

    model: str
    max_tokens: int = 2
    intent: str = "deterministic"

    def body(self, *, stream: bool) -> dict[str, Any]:
        """The request's body."""
        return {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "stream": stream,
            "messages": [{"role": "user", "content": "name a river"}],
        }


def ask(
    client: httpx.Client, question: Question, *, stream: bool = False, headers: dict[str, str] | None = None
) -> Answer:
    """Asks once; nothing is tried again."""
    began = time.monotonic()
    sent = {
        "anthropic-version": "2023-06-01",
        "anthropic-sampling-intent": question.intent,
        **(headers or {}),
    }
    told: Mapping[str, str] = {}
    try:
        with client.stream(
            "POST", "/v1/messages", json=question.body(stream=stream), headers=sent
        ) as response:
            told = response.headers
            failure = _failure(response.status_code, response.read().decode(), stream=stream)
    except httpx.HTTPError as error:
        failure = repr(error)
    return Answer(
        began,
        time.monotonic(),
        told.get(REVISION, ""),
        told.get(ANCHOR, ""),
        told.get(CHANGED) == "true",
        failure,
        told.get(REQUEST_ID, ""),
    )


def _failure(status: int, text: str, *, stream: bool) -> str:
    if status != httpx.codes.OK:
        return f"{status}: {text[:300]}"
    if not stream:
        return "" if json.loads(text).get("stop_reason") else f"no end: {text[:300]}"
    return "" if "event: message_stop" in text and "event: error" not in text else f"truncated: {text[-300:]}"


@dataclass(slots=True)
class Askers:
    """Clients that ask one request after the other, half of them for streams, as long as the context lasts.

    Attributes:
        url: Where they ask.
        question: What.
        clients: How many.
    """

    url: str
    question: Question
    clients: int = 6
    answers: list[Answer] = field(default_factory=list[Answer])
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread])

    def __enter__(self) -> Self:
        """Starts them."""
        for number in range(self.clients):
            thread = threading.Thread(target=self._ask_on, args=(number,), name=f"asker {number}")
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets each of them end its present request."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def failures(self) -> list[Answer]:
        """What went wrong."""
        return [answer for answer in self.answers if answer.failure]

    def since(self, moment: float) -> list[Answer]:
        """Answers to requests that were sent later."""
        return [answer for answer in self.answers if answer.began >= moment]

    def wait_for_more(self, count: int, *, seconds: float) -> None:
        """Waits until so many more answers came."""
        wanted = len(self.answers) + count
        wait_for(lambda: len(self.answers) >= wanted, what=f"{count} more answers", seconds=seconds)

    def _ask_on(self, number: int) -> None:
        with httpx.Client(base_url=self.url, timeout=_TIMEOUT, trust_env=False) as client:
            while not self._stop.is_set():
                self.answers.append(ask(client, self.question, stream=number % 2 == 0))


@dataclass(slots=True)
class Conversations:
    """Conversations whose clients repeat the revision that they got, as a header of their next turn.

    Attributes:
        url: Where they are held.
        question: What is asked in each turn.
        turns: Turns of each.
        together: How many are held at the same time.
    """

    url: str
    question: Question
    turns: int = 6
    together: int = 8
    pause_s: float = 0.0
    held: list[list[Answer]] = field(default_factory=list[list[Answer]])

    @contextmanager
    def running(self, count: int, first: Sequence[str] = ()) -> Iterator[None]:
        """Holds so many of them beside what the context does, and waits for the end of all.

        Args:
            count: How many.
            first: Revisions that they begin with, in turn; whoever answers if empty.
        """
        starts: Iterator[str] = itertools.cycle(first) if first else itertools.repeat("")
        with ThreadPoolExecutor(self.together) as clients:
            held = [clients.submit(self._hold_one, named) for named in itertools.islice(starts, count)]
            yield
            for one in held:
                one.result()

    def wait_for_turns(self, count: int) -> None:
        """Waits until so many turns are over."""
        wait_for(lambda: sum(map(len, self.held)) >= count, what=f"{count} turns", seconds=300)

    def _hold_one(self, named: str) -> None:
        turns: list[Answer] = []
        self.held.append(turns)
        with httpx.Client(base_url=self.url, timeout=_TIMEOUT, trust_env=False) as client:
            for turn in range(self.turns):
                headers = {"zero-layer-revision": named} if named else {}
                answer = ask(client, self.question, stream=turn % 2 == 0, headers=headers)
                turns.append(answer)
                named = answer.revision or named
                time.sleep(self.pause_s)
