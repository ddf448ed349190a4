"""The engine's thread: schedule, run, hand out; again and again until there is nothing to do."""

import logging
import threading
import time
from dataclasses import dataclass, replace

from zerolayer_worker.engine.api import (
    EngineError,
    EngineEvent,
    EngineStats,
    Failed,
    Finished,
    OverloadedError,
    TokenAlternative,
    TokenLogprob,
)
from zerolayer_worker.engine.block_manager import prefix_keys
from zerolayer_worker.engine.fair_queue import QueueFullError
from zerolayer_worker.engine.load_account import LoadAccount
from zerolayer_worker.engine.load_meter import LoadMeter
from zerolayer_worker.engine.output import Ending, OutputProcessor
from zerolayer_worker.engine.repeats import Repeats, Sample
from zerolayer_worker.engine.runner import Runner
from zerolayer_worker.engine.scheduler import Scheduler, StepPlan, Work
from zerolayer_worker.engine.sequence import Sequence
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.sampling.provider import Choice

_log = logging.getLogger(__name__)

# No client's: the engine numbers theirs.
_REPEAT_ID = "repeat"
# The age of the last step that a failed engine reports: no threshold lets it pass.
DEAD_AGE_S = 1e9
_RETRY_AFTER_MAX_S = 60


@dataclass(slots=True)
class _Clock:
    steps: int = 0
    last_turn: float = 0.0
    answer_seconds: float = 1.0


@dataclass(slots=True)
class _Counts:
    preemptions: int = 0
    prefix_query_tokens: int = 0
    prefix_hit_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Repeat:
    """A request that is asked again, and since when."""

    sample: Sample
    sequence: Sequence
    began: float


class EngineLoop:
    """Runs requests until closed. `submit`, `abort` and `stats` may be called from any thread."""

    def __init__(
        self,
        runner: Runner,
        scheduler: Scheduler,
        tokenizer: ModelTokenizer,
        *,
        chunk: int,
        consistency_share: float = 0.0,
        prefix_root: bytes = b"",
    ) -> None:
        """`prefix_root` names what computes, see `prefix_keys`."""
        self._runner = runner
        self._scheduler = scheduler
        self._tokenizer = tokenizer
        self._sequences: dict[str, Sequence] = {}
        self._chunk = chunk
        self._prefix_root = prefix_root
        self._shares_prefixes = False
        self._counts = _Counts()
        self._meter = LoadMeter(slots=scheduler.slots, chunk=chunk)
        self._account = LoadAccount()
        self._repeats = Repeats(consistency_share)
        self._repeat: _Repeat | None = None
        self._clock = _Clock(last_turn=time.monotonic())
        # Guards all of the above but the runner, which is the loop's own. Never held during a step.
        self._changed = threading.Condition()
        self._closing = False
        self._failure: str | None = None
        self._thread = threading.Thread(target=self._main, name="engine", daemon=True)
        self._thread.start()

    def submit(self, sequence: Sequence) -> None:
        """Queues a sequence.

        Raises:
            OverloadedError: the queue is full.
            EngineError: the engine has failed or is closed.
        """
        work = self._work(sequence)
        with self._changed:
            if self._failure is not None:
                raise EngineError(self._failure)
            if self._closing:
                raise EngineError("the engine is closed")
            request = sequence.request
            self._make_room()
            try:
                self._scheduler.add(work)
            except QueueFullError:
                raise OverloadedError("the queue is full", retry_after=self._retry_after()) from None
            now = time.monotonic()
            self._enter(sequence, now)
            sequence.trace = [] if self._repeats.wants(request) else None
            self._account.arrived(request.request_id, now)
            self._changed.notify()

    def check_room(self, client: str) -> None:
        """Refuses what `submit` would refuse for want of a place.

        Raises:
            OverloadedError: the queue is full.
        """
        with self._changed:
            self._make_room()
            try:
                self._scheduler.check_room(client)
            except QueueFullError:
                raise OverloadedError("the queue is full", retry_after=self._retry_after()) from None

    def _work(self, sequence: Sequence) -> Work:
        """Before clients come, prompts share nothing: the warm-up is to measure all of them."""
        request = sequence.request
        keys = (
            prefix_keys(self._prefix_root, request.prompt_ids, self._chunk) if self._shares_prefixes else ()
        )
        return Work(
            request.request_id, len(request.prompt_ids), request.max_tokens, client=request.client, keys=keys
        )

    def abort(self, request_id: str) -> None:
        """Gives a request up and frees its slot; nothing happens if it is over already."""
        with self._changed:
            self._forget(request_id)

    def stats(self) -> EngineStats:
        """See `Engine.stats`."""
        with self._changed:
            now = time.monotonic()
            # A request that is asked again has its slot from the start.
            running = self._scheduler.running - (self._repeat is not None)
            waiting = self._scheduler.waiting
            age = 0.0 if self._scheduler.empty else now - self._clock.last_turn
            return EngineStats(
                running=running,
                waiting=waiting,
                slots=self._scheduler.slots,
                steps=self._clock.steps,
                idle=running + waiting == 0 and self._failure is None,
                busy_share=self._meter.share(now),
                busy_share_seconds=self._meter.seconds(now),
                last_step_age_s=age if self._failure is None else DEAD_AGE_S,
                load=self._account.counts(now),
                repeats=self._repeats.counts,
                sampler_second_passes=self._runner.sampler.second_passes,
                kv_pages=self._scheduler.blocks.pages,
                kv_pages_used=self._scheduler.blocks.used,
                kv_pages_cached=self._scheduler.blocks.cached,
                preemptions=self._counts.preemptions,
                prefix_query_tokens=self._counts.prefix_query_tokens,
                prefix_hit_tokens=self._counts.prefix_hit_tokens,
            )

    def forget_load(self) -> None:
        """Takes the work so far out of the busy share and of all counts, requests that still run included.

        What comes from here on is clients', and deterministic answers among it are asked for again.
        """
        with self._changed:
            self._repeats.open(time.monotonic())
            self._meter.clear()
            self._account = LoadAccount()
            self._counts = _Counts()
            self._shares_prefixes = True

    def close(self) -> None:
        """Ends the thread after its current step; open requests fail."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _main(self) -> None:
        try:
            while self._turn():
                continue
            self._fail_all("the engine is closed")
        except Exception as error:  # noqa: BLE001 - whatever it is, requests and liveness must learn of it
            _log.exception("the engine's loop ended")
            with self._changed:
                self._meter.end(time.monotonic())
                self._failure = f"the engine failed: {type(error).__name__}"
            self._fail_all(self._failure)

    def _wait_for_work(self) -> None:
        """Returns with something to do, or closing. The lock is held when it returns."""
        idle_since = time.monotonic()
        while self._scheduler.empty and not self._closing:
            wait_s = self._repeats.wait_s(time.monotonic(), idle_since)
            if wait_s == 0:
                self._ask_again(self._repeats.take())
            else:
                self._changed.wait(wait_s)
            self._clock.last_turn = time.monotonic()
        if self._repeat is None and self._scheduler.spare and not self._scheduler.prompting:
            # A prompt of one chunk, computed in the step that comes, holds nobody up by more than that.
            sample = self._repeats.take_among_clients(time.monotonic(), self._chunk)
            if sample is not None:
                self._ask_again(sample)

    def _ask_again(self, sample: Sample) -> None:
        request = replace(sample.request, request_id=_REPEAT_ID)
        # Only its tokens are looked at; it has no text.
        output = OutputProcessor(self._tokenizer.detokenizer(), max_tokens=1, eos_ids=frozenset(), stops=())
        sequence = Sequence(request, output, lambda _event: None, sample.seed, trace=[])
        now = time.monotonic()
        # It shares no prefix: to compute all of it again is the stronger check.
        self._scheduler.add(
            Work(request.request_id, len(request.prompt_ids), len(sample.tokens), background=True)
        )
        self._enter(sequence, now)
        self._repeat = _Repeat(sample, sequence, now)

    def _make_room(self) -> None:
        """Gives the repeated request up where one of a client comes and has no other slot.

        A prompt that is not yet computed gives way too, as it would take turns with the client's.
        """
        if self._repeat is not None and (not self._scheduler.spare or not self._repeat.sequence.trace):
            self._give_up_repeat(self._repeat)

    def _give_up_repeat(self, repeat: _Repeat) -> None:
        self._repeat = None
        self._forget(_REPEAT_ID)
        self._repeats.given_up(repeat.sample, repeat.began, time.monotonic())

    def _compare(self, repeat: _Repeat, token_id: int) -> None:
        """Takes the repeated answer's next token; the first that differs, or the last, decides."""
        repeat.sequence.take(token_id)
        tokens = repeat.sequence.trace or []
        if tokens == list(repeat.sample.tokens[: len(tokens)]) and len(tokens) < len(repeat.sample.tokens):
            return
        self._repeat = None
        self._forget(_REPEAT_ID)
        if not self._repeats.compared(repeat.sample, tokens, repeat.began, time.monotonic()):
            _log.error(
                "a deterministic answer came out differently when asked for again",
                extra={"request_id": repeat.sample.request.request_id, "tokens": len(tokens)},
            )

    def _turn(self) -> bool:
        """A step, as soon as there is something to do; False when it is to be the last."""
        with self._changed:
            self._wait_for_work()
            if self._closing:
                return False
            plan = self._scheduler.schedule()
            self._count_begun(plan)
            sequences = dict(self._sequences)
        choices = self._runner.run(plan, sequences)
        with self._changed:
            self._count_ended()
            for request_id, choice in choices.items():
                # A request that was given up during the step has left; its token goes nowhere.
                if self._sequences.get(request_id) is sequences[request_id]:
                    self._advance(sequences[request_id], choice)
        return True

    def _count_begun(self, plan: StepPlan) -> None:
        """Counts what clients' requests have of a step."""
        now = time.monotonic()
        for request_id in plan.preempted:
            if self._repeat is not None and request_id == _REPEAT_ID:
                self._give_up_repeat(self._repeat)
            else:
                self._counts.preemptions += 1
                self._account.waits_again(request_id, now)
        for admission in plan.admitted:
            self._account.started(admission.request_id, now)
            if not admission.again and admission.request_id != _REPEAT_ID:
                self._count_admitted(self._sequences[admission.request_id], admission.cached, now)
        decoded = sum(row.request_id != _REPEAT_ID for row in plan.decode)
        prefilled = plan.prefill.count if plan.prefill and plan.prefill.request_id != _REPEAT_ID else 0
        self._meter.begin(now, decoded=decoded, prefilled=prefilled)

    def _count_admitted(self, sequence: Sequence, cached: int, now: float) -> None:
        sequence.queued_s = now - sequence.submitted
        sequence.cached_tokens = cached
        self._counts.prefix_query_tokens += len(sequence.request.prompt_ids)
        self._counts.prefix_hit_tokens += cached

    def _count_ended(self) -> None:
        now = time.monotonic()
        self._clock.steps += 1
        self._clock.last_turn = now
        self._meter.end(now)

    def _advance(self, sequence: Sequence, choice: Choice) -> None:
        """Only this request fails if its own text can't be made."""
        if self._repeat is not None and sequence is self._repeat.sequence:
            self._compare(self._repeat, choice.token_id)
            return
        try:
            if not sequence.output.tokens:
                sequence.first_token_s = time.monotonic() - sequence.submitted
            sequence.take(choice.token_id)
            delta, ending = sequence.output.push(choice.token_id, self._logprob(choice))
        except Exception:  # noqa: BLE001 - one request's fault must not end the others
            _log.exception("a request failed", extra={"request_id": sequence.request.request_id})
            self._finish(sequence, Failed("the answer's text could not be decoded"))
            return
        if delta is not None:
            sequence.deliver(delta)
        if ending is not None:
            if sequence.trace is not None:
                self._repeats.keep(Sample(sequence.request, sequence.seed, tuple(sequence.trace)))
            self._finish(sequence, _finished(sequence, ending))

    def _finish(self, sequence: Sequence, event: EngineEvent) -> None:
        request_id = sequence.request.request_id
        took = time.monotonic() - sequence.submitted
        self._clock.answer_seconds += (took - self._clock.answer_seconds) / 8
        self._forget(request_id)
        sequence.deliver(event)

    def _enter(self, sequence: Sequence, now: float) -> None:
        self._sequences[sequence.request.request_id] = sequence
        sequence.submitted = now

    def _forget(self, request_id: str) -> None:
        self._scheduler.remove(request_id)
        self._sequences.pop(request_id, None)
        self._account.left(request_id, time.monotonic())

    def _fail_all(self, message: str) -> None:
        with self._changed:
            if self._repeat is not None:
                self._give_up_repeat(self._repeat)
            for sequence in list(self._sequences.values()):
                self._finish(sequence, Failed(message))

    def _retry_after(self) -> int:
        """Seconds until a place in the queue is likely free: a slot's turn, by the latest answers' length."""
        return max(1, min(_RETRY_AFTER_MAX_S, round(self._clock.answer_seconds / self._scheduler.slots)))

    def _logprob(self, choice: Choice) -> TokenLogprob | None:
        if choice.logprob is None:
            return None
        text = self._tokenizer.token_text
        top = tuple(TokenAlternative(token_id, text(token_id), logprob) for token_id, logprob in choice.top)
        return TokenLogprob(choice.token_id, text(choice.token_id), choice.logprob, top)


def _finished(sequence: Sequence, ending: Ending) -> Finished:
    return Finished(
        reason=ending.reason,
        prompt_tokens=len(sequence.request.prompt_ids),
        output_tokens=sequence.output.tokens,
        cached_tokens=sequence.cached_tokens,
        stop_sequence=ending.stop_sequence,
        queued_s=sequence.queued_s,
        first_token_s=sequence.first_token_s,
    )
