"""From a prepared request to the engine's events, with every failure as an `ApiError`."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

from zerolayer_worker.engine.api import (
    Engine,
    EngineError,
    EngineEvent,
    Failed,
    Finished,
    GenerationRequest,
    IntentUnavailableError,
    OverloadedError,
    PromptTooLongError,
    TextDelta,
    TokenLogprob,
)
from zerolayer_worker.server import limits
from zerolayer_worker.server.answer import Answer
from zerolayer_worker.server.context import Call
from zerolayer_worker.server.errors import ApiError, overloaded
from zerolayer_worker.server.genai_metrics import DISCONNECTED, Operation
from zerolayer_worker.server.metrics import Metrics

_log = logging.getLogger(__name__)


def as_api_error(error: EngineError) -> ApiError:
    """What a client is told when the engine refuses a request."""
    match error:
        case OverloadedError():
            return overloaded(str(error), retry_after=error.retry_after, reason=error.reason)
        case PromptTooLongError():
            return ApiError(400, f"messages: {error}", param="messages", code="context_length_exceeded")
        case IntentUnavailableError():
            return ApiError(
                503,
                f"intent: {error}",
                param="intent",
                code="intent_unavailable",
                reason="intent_unavailable",
            )
        case _:
            return ApiError(500, str(error), reason="engine_error")


async def admitted(engine: Engine, request: GenerationRequest) -> AsyncGenerator[TextDelta | Finished | None]:
    """Yields None once the engine has accepted the request, then its events up to `Finished`.

    Closing the generator closes the engine's.

    Raises:
        ApiError: the engine refused the request, or could not complete it.
    """
    async with aclosing(engine.generate(request)) as events:
        try:
            first = asyncio.create_task(_next(events))
            try:
                await asyncio.wait({first}, timeout=limits.ADMISSION_S)
                if first.done():
                    # Before the answer's first byte a failure is still a status code.
                    event = _checked(first.result())
                    yield None
                    yield event
                else:
                    yield None
                    yield _checked(await first)
            finally:
                first.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await first
            async for event in events:
                yield _checked(event)
        except EngineError as error:
            raise as_api_error(error) from None
        except (ApiError, GeneratorExit, asyncio.CancelledError):
            raise
        except Exception as error:
            _log.exception("the engine failed", extra={"request_id": request.request_id})
            raise ApiError(
                500, "internal error; the request id names it in the log", reason="internal"
            ) from error


def _next(events: AsyncGenerator[EngineEvent]) -> Coroutine[Any, Any, EngineEvent]:
    async def step() -> EngineEvent:
        return await anext(events)

    return step()


def _checked(event: EngineEvent) -> TextDelta | Finished:
    if isinstance(event, Failed):
        raise ApiError(500, event.message, reason="failed")
    return event


class Meter:
    """Feeds the metrics and the trace of one generated answer."""

    def __init__(
        self, metrics: Metrics, route: str, call: Call, operation: Operation, request: GenerationRequest
    ) -> None:
        self._metrics = metrics
        self._route = route
        self._call = call
        self._operation = operation
        self._prompt_tokens = len(request.prompt_ids)
        self._first_made: float | None = None
        self._last_made = 0.0
        self._later_tokens = 0
        call.trace.asked(operation, request)

    def accepted(self) -> None:
        """The engine took the request."""
        self._metrics.prompt_tokens.inc(self._prompt_tokens)
        if self._call.intent is not None:
            self._metrics.intent_requests.labels(self._call.intent.value).inc()

    def delta(self, delta: TextDelta) -> None:
        """Text or held-back tokens arrived."""
        if self._first_made is None:
            self._first_made = delta.made
            self._call.trace.first_token()
            self._metrics.first_token.labels(self._route).observe(self._elapsed())
        elif delta.token_ids:
            gap = (delta.made - self._last_made) / len(delta.token_ids)
            for _ in delta.token_ids:
                self._metrics.inter_token.observe(gap)
            self._later_tokens += len(delta.token_ids)
        self._last_made = delta.made
        self._metrics.output_tokens.inc(len(delta.token_ids))

    def finished(self, finished: Finished) -> None:
        """The answer is complete."""
        self._call.outcome = "ok"
        self._call.trace.finished(finished)
        elapsed = self._elapsed()
        self._metrics.duration.labels(self._route).observe(elapsed)
        self._metrics.queue_time.observe(finished.queued_s)
        self._metrics.gen_ai.complete(
            self._operation,
            seconds=elapsed,
            first_token_s=self._since_start(self._first_made),
            per_token_s=self._per_token(),
            input_tokens=finished.prompt_tokens,
            output_tokens=finished.output_tokens,
        )

    def failed(self, error: ApiError) -> None:
        """The answer ends in an error; a fault of the client's is none of the worker's."""
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._call.outcome = "error"
        self._fail(str(error.status))

    def gone(self) -> None:
        """The client went away before the answer was complete."""
        self._metrics.disconnects.inc()
        self._fail(DISCONNECTED)

    def _fail(self, error_type: str) -> None:
        self._call.trace.failed(error_type)
        self._metrics.gen_ai.failed(self._operation, seconds=self._elapsed(), error_type=error_type)

    def _elapsed(self) -> float:
        return time.monotonic() - self._call.started

    def _since_start(self, made: float | None) -> float | None:
        return None if made is None else made - self._call.started

    def _per_token(self) -> float | None:
        """Seconds for each token after those that came first; None where there are none."""
        if self._first_made is None or not self._later_tokens:
            return None
        return (self._last_made - self._first_made) / self._later_tokens


async def collect(engine: Engine, request: GenerationRequest, meter: Meter) -> Answer:
    """The whole answer, for clients that do not stream.

    Raises:
        ApiError: as `admitted`.
    """
    text: list[str] = []
    logprobs: list[TokenLogprob] = []
    async with aclosing(admitted(engine, request)) as events:
        async for event in events:
            match event:
                case None:
                    meter.accepted()
                case TextDelta():
                    meter.delta(event)
                    text.append(event.text)
                    logprobs.extend(event.logprobs)
                case Finished():
                    meter.finished(event)
                    return Answer("".join(text), logprobs, event)
    raise ApiError(500, "the engine ended the answer early", reason="internal")
