"""Asks a worker at a rate that does not wait for answers, or with so many clients, and times it all.

    python -m zerolayer_dev.testing.open_loop '{"port": 8000, "body": {…}, "rate": 100, "seconds": 10}'

A process of its own with sockets of its own, since a client library costs more than the refusals that are
to be timed. Each request has a new connection, as the clients of an overloaded service do. It prints one
JSON object: a list for each request.
"""

import asyncio
import json
import random
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

_HOST = "127.0.0.1"
_OK = 200


@dataclass(slots=True)
class Asked:
    """One request; times in seconds since the load began.

    Attributes:
        due: when it was to be sent.
        sent: when the connection was asked for.
        head: when the answer's status had arrived.
        status: HTTP status; 0 where the connection broke.
        tokens: when each piece of text arrived.
        end: when the answer was complete.
        complete: whether it came to its proper end.
        left: whether it was still open when the time was over, and was given up.
    """

    due: float
    sent: float = 0.0
    head: float = 0.0
    status: int = 0
    tokens: list[float] = field(default_factory=list)
    end: float = 0.0
    complete: bool = False
    left: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """What to ask and how.

    Attributes:
        port: on the loopback.
        body: of each request to `/v1/chat/completions`; it is streamed.
        seconds: for which requests are sent.
        rate: requests per second, at random times; None for a fixed number of clients.
        clients: that each ask again once they are answered.
    """

    port: int
    body: dict[str, Any]
    seconds: float
    rate: float | None = None
    clients: int = 1


class _Run:
    def __init__(self, load: Load) -> None:
        body = json.dumps({**load.body, "stream": True}).encode()
        self._load = load
        self._request = (
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: worker\r\ncontent-type: application/json\r\n"
            b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )
        self._began = time.monotonic()
        self.asked: list[Asked] = []

    def now(self) -> float:
        return time.monotonic() - self._began

    async def ask(self, due: float) -> None:
        asked = Asked(due, sent=self.now())
        self.asked.append(asked)
        try:
            reader, writer = await asyncio.open_connection(_HOST, self._load.port)
            try:
                writer.write(self._request)
                head = await reader.readuntil(b"\r\n\r\n")
                asked.head, asked.status = self.now(), int(head.split(b" ", 2)[1])
                async for line in reader:
                    if b'"content":"' in line and b'"content":""' not in line:
                        asked.tokens.append(self.now())
                    asked.complete |= line.startswith(b"data: [DONE]")
            finally:
                writer.close()
        except (OSError, asyncio.IncompleteReadError):
            asked.complete = False
        except asyncio.CancelledError:
            asked.left = asked.status in (0, _OK)
        asked.end = self.now()

    async def open(self, rate: float) -> None:
        dice, due = random.Random(0), 0.0  # noqa: S311 - to be repeatable is the point
        tasks = set[asyncio.Task[None]]()
        while (due := due + dice.expovariate(rate)) < self._load.seconds:
            await asyncio.sleep(max(0.0, due - self.now()))
            tasks.add(asyncio.create_task(self.ask(due)))
        await asyncio.sleep(self._load.seconds - self.now())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def closed(self, clients: int) -> None:
        async def client() -> None:
            while self.now() < self._load.seconds:
                await self.ask(self.now())

        await asyncio.gather(*(client() for _ in range(clients)))


def run(load: Load) -> list[Asked]:
    """Asks; returns once everything is answered or, at a rate, given up."""
    this = _Run(load)
    asyncio.run(this.closed(load.clients) if load.rate is None else this.open(load.rate))
    return this.asked


if __name__ == "__main__":
    print(json.dumps([asdict(each) for each in run(Load(**json.loads(sys.argv[1])))]))
