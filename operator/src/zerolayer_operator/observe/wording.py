"""Words of others, made fit for a message: on one line, and in the pool's terms; no I/O."""

import re
from typing import Final

_MESSAGE_LIMIT: Final = 600
_CUT: Final = "…"
_PUNCTUATION: Final = ",;.()[]{}'\""
_FIGURES: Final = re.compile(r"[\w.:,+-]*\d[\w.:,+-]*")

FIELDS: Final = {
    "model-path": "spec.model.source",
    "model-name": "spec.model.name",
    "builtin": "spec.model.source.builtin.name",
    "device": "spec.worker.device",
    "dtype": "spec.worker.dtype",
    "quantization": "spec.worker.quantization",
    "max-model-len": "spec.worker.maxModelLen",
    "memory-utilization": "spec.worker.memoryUtilization",
    "cuda-graphs": "spec.worker.cudaGraphs",
    "max-batch-size": "spec.worker.maxBatchSize",
    "default-intent": "spec.intents.default",
    "allowed-intents": "spec.intents.allowed",
    "anchor-path": "spec.anchor.source",
    "anchor-version": "spec.anchor.version",
    "anchor-digest": "spec.anchor.digest",
    "api-key-dir": "spec.apiKeySecretRef",
    "warmup-prompt": "spec.warmup.prompt",
    "warmup-max-tokens": "spec.warmup.maxTokens",
    "warmup-timeout-seconds": "spec.warmup.timeoutSeconds",
    "warmup-settle-ratio": "spec.warmup.settleRatio",
    "drain-seconds": "spec.drainSeconds",
}
"""Flags of a worker, and the fields of the pool that they stand for."""

_FLAGS: Final = {flag.replace("-", "_"): field for flag, field in FIELDS.items()}
_FLAG: Final = re.compile(r"--([a-z]+(?:-[a-z]+)*)\b|\b([a-z]+(?:_[a-z]+)+)\b")

_POD: Final = re.compile(r'^[Pp]ods? "[^"]*" is ')


def one_line(text: object) -> str:
    """The end of a text on one line: errors say what matters last."""
    line = " ".join(str(text or "").split())
    return line if len(line) <= _MESSAGE_LIMIT else _CUT + line[-_MESSAGE_LIMIT:]


def without_pod(said: object) -> str:
    """Why a pod can't be made, without its name: each attempt has another."""
    return _POD.sub("", one_line(said))


def in_fields(said: str) -> str:
    """A worker's words with each of its flags (``--max-model-len``, ``max_model_len``) named as the field."""
    return _FLAG.sub(lambda found: _FLAGS.get((found[1] or found[2]).replace("-", "_"), found[0]), said)


def same_words(first: str, second: str) -> bool:
    """Whether two texts differ at most in figures (times, ports, addresses, ids) and in the order of words.

    Who lists things that have no order, as many that are written in Go do, lists them in another each time.
    """
    left, right = (_words(text) for text in (first, second))
    if first.startswith(_CUT) and second.startswith(_CUT):
        # Figures of other lengths let more or fewer words through, and part of the first one.
        shared = min(len(left), len(right)) - 1
        return left[-shared:] == right[-shared:]
    return sorted(left) == sorted(right)


def _words(text: str) -> list[str]:
    return [word.strip(_PUNCTUATION) for word in _FIGURES.sub("0", text).split()]
