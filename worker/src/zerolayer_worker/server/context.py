"""What every route of the serving port needs, and what is known about one request."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from starlette.datastructures import Headers
from starlette.types import Scope

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import Engine, OverloadedError
from zerolayer_worker.server import limits
from zerolayer_worker.server.auth import KeyRing
from zerolayer_worker.server.errors import Protocol, model_not_found, overloaded
from zerolayer_worker.server.intent_policy import IntentPolicy
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.metrics import Metrics
from zerolayer_worker.server.prepare import EncodedChat
from zerolayer_worker.server.switches import IntentSwitches
from zerolayer_worker.server.tracing import NoTracing, Trace, Tracing

REVISION_HEADER: Final = b"x-zero-layer-revision"
ANCHOR_HEADER: Final = b"x-zero-layer-anchor"
PIN_HEADER: Final = "zero-layer-revision"
"""By which a client, or a gateway for it, asks to stay with the revision that an earlier answer named."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The process' parts, built once.

    Attributes:
        engine: loaded and warmed up.
        lifecycle: drain and requests in flight.
        metrics: this process' registry.
        policy: the pool's intents.
        keys: None where clients need no key.
        revision: the pool's revision, empty outside of one.
        switches: the last intents of conversations.
        tracing: where traces of requests go.
    """

    engine: Engine
    lifecycle: Lifecycle
    metrics: Metrics
    policy: IntentPolicy = field(default_factory=IntentPolicy)
    keys: KeyRing | None = None
    revision: str = ""
    switches: IntentSwitches = field(default_factory=IntentSwitches)
    tracing: Tracing = field(default_factory=NoTracing)

    @property
    def identity(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers of every answer that name what produced it."""
        anchor = self.engine.info.anchor
        named = ((REVISION_HEADER, self.revision), (ANCHOR_HEADER, anchor.version if anchor else ""))
        return tuple((name, value.encode()) for name, value in named if value)

    def moved(self, headers: Headers) -> bool:
        """Whether a request names another revision than this, so that its conversation has changed over."""
        return any(named != self.revision for named in headers.getlist(PIN_HEADER) if named)

    def check_key(self, headers: Mapping[str, str]) -> None:
        """Refuses a request without a valid key, where keys are configured."""
        if self.keys is not None:
            self.keys.check(headers)

    def check_load(self) -> None:
        """Refuses a request before its body is read where far too many are open."""
        if self.lifecycle.in_flight > limits.MAX_IN_FLIGHT:
            what = f"{limits.MAX_IN_FLIGHT} requests are open"
            raise overloaded(what, retry_after=1, reason="too_many_open")

    def note_intent(self, call: "Call", chat: EncodedChat) -> None:
        """Counts a conversation that goes on under another intent."""
        if call.intent is not None and self.switches.switched(
            chat.opening, call.intent, continued=chat.continued
        ):
            self.metrics.intent_switches.inc()

    def check_room(self, client: str) -> None:
        """Refuses a request that would find no place in the engine's queue, before it costs anything more.

        Raises:
            ApiError: 429.
        """
        try:
            self.engine.check_room(client)
        except OverloadedError as error:
            raise overloaded(str(error), retry_after=error.retry_after, reason=error.reason) from None

    def check_model(self, model: str) -> None:
        """Refuses any model but the served one; there is no fallback."""
        served = self.engine.info.name
        if model != served:
            raise model_not_found(model, served)


@dataclass(slots=True)
class Call:
    """One request. Kept in the ASGI scope so that errors know of it too.

    Attributes:
        request_id: the id in the `request-id` header.
        protocol: whose shapes its answer takes.
        moved: whether it names another revision than the one that answers.
        started: when its headers had arrived, in seconds of the monotonic clock.
        intent: in zero-layer mode, once it has been read.
        outcome: whether the answer was complete, or failed by the worker's fault; None for what is neither.
        trace: what is told of it to a collector.
    """

    request_id: str
    protocol: Protocol
    moved: bool = False
    started: float = field(default_factory=time.monotonic)
    intent: Intent | None = None
    outcome: Literal["ok", "error"] | None = None
    trace: Trace = field(default_factory=Trace)

    @staticmethod
    def of(scope: Scope) -> "Call":
        """The call that the envelope put into a scope."""
        call: Call = scope["state"]["call"]
        return call


def protocol_of(path: str, headers: Mapping[str, str]) -> Protocol:
    """Whose shapes a request expects: by its path, else by the headers only Messages clients send."""
    if path.startswith("/v1/messages"):
        return Protocol.MESSAGES
    if path.startswith(("/v1/chat", "/v1/completions")):
        return Protocol.OPENAI
    return Protocol.MESSAGES if "anthropic-version" in headers or "x-api-key" in headers else Protocol.OPENAI
