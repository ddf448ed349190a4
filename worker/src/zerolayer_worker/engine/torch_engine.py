"""The engine the server talks to: asyncio on one side, the loop's thread on the other."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import replace

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.api import (
    EngineEvent,
    EngineStats,
    Failed,
    Finished,
    GenerationRequest,
    IntentUnavailableError,
    ModelInfo,
    PromptTooLongError,
)
from zerolayer_worker.engine.loop import EngineLoop
from zerolayer_worker.engine.output import OutputProcessor
from zerolayer_worker.engine.sequence import Deliver, Sequence, seed_source
from zerolayer_worker.models.tokenizer import ModelTokenizer


class TorchEngine:
    """See `api.Engine`; built by `launch.load_engine`."""

    def __init__(
        self,
        *,
        info: ModelInfo,
        tokenizer: ModelTokenizer,
        eos_ids: frozenset[int],
        loop: EngineLoop,
        fingerprint: str,
        unavailable_intents: Mapping[Intent, str],
        seed: int | None,
    ) -> None:
        self._info = info
        self._tokenizer = tokenizer
        self._eos_ids = eos_ids
        self._loop = loop
        self._fingerprint = fingerprint
        self._unavailable = dict(unavailable_intents)
        self._fresh_seed = seed_source(seed)
        self._submitted = 0
        self.stages: Mapping[str, float] = {}

    @property
    def info(self) -> ModelInfo:
        """What is served."""
        return self._info

    @property
    def encoder(self) -> ModelTokenizer:
        """The served model's tokenizer and chat template."""
        return self._tokenizer

    @property
    def fingerprint(self) -> str:
        """Names everything a deterministic answer depends on."""
        return self._fingerprint

    @property
    def unavailable_intents(self) -> Mapping[Intent, str]:
        """Intents the start-up self-test ruled out, each with the reason."""
        return self._unavailable

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[EngineEvent]:
        """See `api.Engine.generate`."""
        self._check(request)
        events: asyncio.Queue[EngineEvent] = asyncio.Queue()
        running = asyncio.get_running_loop()

        def deliver(event: EngineEvent) -> None:
            # A loop that is gone has nobody waiting; that must not concern the other requests.
            with suppress(RuntimeError):
                running.call_soon_threadsafe(events.put_nowait, event)

        sequence = self._sequence(request, deliver)
        self._loop.submit(sequence)
        try:
            while True:
                event = await events.get()
                yield event
                if isinstance(event, Finished | Failed):
                    return
        finally:
            self._loop.abort(sequence.request.request_id)

    def check_room(self, client: str) -> None:
        """See `api.Engine.check_room`."""
        self._loop.check_room(client)

    def stats(self) -> EngineStats:
        """See `api.Engine.stats`."""
        return self._loop.stats()

    def forget_load(self) -> None:
        """Takes the engine's own work so far out of the busy share and of all counts; clients' begins."""
        self._loop.forget_load()

    def close(self) -> None:
        """Stops the engine's thread; open requests fail."""
        self._loop.close()

    def _check(self, request: GenerationRequest) -> None:
        intent = request.sampling.intent
        if intent is not None and intent in self._unavailable:
            others = " or ".join(each.value for each in Intent if each not in self._unavailable)
            raise IntentUnavailableError(
                f"{intent.value} is not available on this worker ({self._unavailable[intent]}); "
                f"ask for {others}"
            )
        if not request.prompt_ids or request.max_tokens < 1:
            raise ValueError("a request needs a prompt and room for at least one token")
        wanted, limit = len(request.prompt_ids) + request.max_tokens, self._info.max_model_len
        if wanted > limit:
            raise PromptTooLongError(
                f"prompt ({len(request.prompt_ids)} tokens) and max_tokens ({request.max_tokens}) exceed "
                f"the context of {limit} tokens"
            )

    def _sequence(self, request: GenerationRequest, deliver: Deliver) -> Sequence:
        """The engine's own number makes ids unique, whatever clients send."""
        self._submitted += 1
        output = OutputProcessor(
            self._tokenizer.detokenizer(),
            max_tokens=request.max_tokens,
            eos_ids=self._eos_ids,
            stops=request.stop_sequences,
        )
        seed = request.sampling.seed
        return Sequence(
            request=replace(request, request_id=f"{self._submitted}:{request.request_id}"),
            output=output,
            deliver=deliver,
            seed=self._fresh_seed() if seed is None else seed,
        )
