"""A scripted engine behind the real application on a real socket."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import httpx
import pytest

from zerolayer_dev.testing.serving import running
from zerolayer_worker.common.errors import TextTooLongError
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import (
    EngineEvent,
    EngineStats,
    Finished,
    FinishReason,
    GenerationRequest,
    LoadCounts,
    ModelInfo,
    OverloadedError,
    TextDelta,
    TokenAlternative,
    TokenLogprob,
)
from zerolayer_worker.server.app import serving_app
from zerolayer_worker.server.connections import Server
from zerolayer_worker.server.context import Serving
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.metrics import Metrics
from zerolayer_worker.server.ops import ops_app

MODEL = "fake-model"
FINGERPRINT = "zl-fake-1"
CONTEXT = 200
ENDLESS = "endless!"


class FakeEncoder:
    """One token per word; records what it was asked to render."""

    def __init__(self) -> None:
        self.messages: Sequence[Mapping[str, object]] = ()
        self.tools: Sequence[Mapping[str, object]] = ()

    def encode_chat(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]] = ()
    ) -> tuple[int, ...]:
        self.messages, self.tools = messages, tools
        if any("refuse me" in str(message["content"]) for message in messages):
            raise ValueError("Conversation roles must alternate")
        if any(ENDLESS in str(message["content"]) for message in messages):
            raise TextTooLongError("prompt is too long: 9 characters")
        words = " ".join(str(message["content"]) for message in messages).split()
        return (1, *range(2, len(words) + 2))

    def encode_text(self, text: str) -> tuple[int, ...]:
        if ENDLESS in text:
            raise TextTooLongError("prompt is too long: 9 characters")
        return tuple(range(len(text.split())))


def words(*texts: str) -> list[EngineEvent]:
    return [TextDelta(text, (index,), (logprob(text),)) for index, text in enumerate(texts)]


def logprob(text: str) -> TokenLogprob:
    return TokenLogprob(1, text, -0.5, (TokenAlternative(1, text, -0.5), TokenAlternative(2, "other", -1.5)))


@dataclass
class FakeEngine:
    """Plays `events`; `gate`, while cleared, holds back everything after the first event."""

    info: ModelInfo = field(
        default_factory=lambda: ModelInfo(
            MODEL,
            "sha256:feed",
            1_700_000_000,
            CONTEXT,
            1000,
            supports_tools=False,
            dtype="float32",
            device="cpu",
            kernels="plain",
        )
    )
    encoder: FakeEncoder = field(default_factory=FakeEncoder)
    fingerprint: str = FINGERPRINT
    unavailable_intents: Mapping[Intent, str] = field(default_factory=dict)
    events: list[EngineEvent] = field(default_factory=lambda: words("Hello", " world", "!"))
    finish: FinishReason = FinishReason.END_OF_SEQUENCE
    stop_sequence: str | None = None
    refusal: Exception | None = None
    full: OverloadedError | None = None
    asked_for_room: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    hold_first: bool = False
    requests: list[GenerationRequest] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    stages: Mapping[str, float] = field(default_factory=lambda: {"load": 1.0})
    step_age: float = 0.0

    def __post_init__(self) -> None:
        self.gate.set()

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[EngineEvent]:
        self.requests.append(request)
        if self.refusal is not None:
            raise self.refusal
        try:
            if self.hold_first:
                await self.gate.wait()
            output = 0
            for event in self.events:
                yield event
                output += len(event.token_ids) if isinstance(event, TextDelta) else 0
                await self.gate.wait()
            yield Finished(self.finish, len(request.prompt_ids), output, 0, self.stop_sequence, queued_s=0.25)
        finally:
            self.closed.set()

    def check_room(self, client: str) -> None:
        self.asked_for_room.append(client)
        if self.full is not None:
            raise self.full

    def stats(self) -> EngineStats:
        return EngineStats(
            running=1,
            waiting=2,
            slots=8,
            steps=3,
            idle=False,
            busy_share=0.5,
            busy_share_seconds=6.25,
            last_step_age_s=self.step_age,
            load=LoadCounts(9, 6, 30.5, 12.25, 28.0),
            sampler_second_passes=4,
            kv_pages=64,
            kv_pages_used=21,
            kv_pages_cached=13,
            preemptions=2,
            prefix_query_tokens=900,
            prefix_hit_tokens=320,
        )

    def close(self) -> None:
        self.closed.set()


@dataclass
class Running:
    """A served application."""

    url: str
    engine: FakeEngine
    serving: Serving
    server: Server
    http: httpx.AsyncClient

    @property
    def lifecycle(self) -> Lifecycle:
        return self.serving.lifecycle

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def metric(self, name: str, **labels: str) -> float:
        return self.serving.metrics.registry.get_sample_value(name, labels) or 0.0

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110  # any state of the server, not an event
                await asyncio.sleep(0.005)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
async def start() -> AsyncIterator[Callable[..., Awaitable[Running]]]:
    """Starts the serving application; keyword arguments go to `Serving`."""
    async with AsyncExitStack() as stack:

        async def begin(engine: FakeEngine, *, drain_seconds: float = 30, **options: object) -> Running:
            lifecycle = Lifecycle(drain_seconds)
            lifecycle.loaded(engine, engine.stages)
            serving = Serving(engine, lifecycle, Metrics(lifecycle), **options)  # type: ignore[arg-type]
            url, server = await stack.enter_async_context(running(serving_app(serving), serving.identity))
            http = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60))
            return Running(url, engine, serving, server, http)

        yield begin


@pytest.fixture
async def live(start: Callable[..., Awaitable[Running]], engine: FakeEngine) -> Running:
    """The application with its defaults."""
    return await start(engine)


@dataclass
class RunningOps:
    """A served operations port."""

    lifecycle: Lifecycle
    metrics: Metrics
    http: httpx.AsyncClient


@pytest.fixture
async def start_ops() -> AsyncIterator[Callable[..., Awaitable[RunningOps]]]:
    """Starts the operations application; keyword arguments go to `ops_app`."""
    async with AsyncExitStack() as stack:

        async def begin(*, drain_seconds: float = 30, **options: object) -> RunningOps:
            lifecycle = Lifecycle(drain_seconds)
            metrics = Metrics(lifecycle)
            app = ops_app(lifecycle, metrics, **options)  # type: ignore[arg-type]
            url, _ = await stack.enter_async_context(running(app))
            http = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60))
            return RunningOps(lifecycle, metrics, http)

        yield begin
