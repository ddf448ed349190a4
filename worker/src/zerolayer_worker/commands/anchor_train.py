"""`zerolayer-worker anchor train`."""

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zerolayer_worker.commands.arguments import count_of, positive, threads_of, weight

if TYPE_CHECKING:
    from zerolayer_worker.anchors.facts import FactFile
    from zerolayer_worker.anchors.training import Progress
    from zerolayer_worker.commands import Subparsers

EVERY_S: Final = 5.0


def add_parser(actions: "Subparsers") -> None:
    """Adds the command."""
    parser = actions.add_parser(
        "train",
        help="make a bundle from a file of facts",
        description="Trains the norm parameters of a model until it knows the facts, held to what it was on "
        "other text. Ctrl-C leaves no bundle, --time-limit one that is trained that far.",
    )
    parser.add_argument(
        "facts", type=Path, metavar="FACTS.jsonl", help='lines of {"question", "answer", "paraphrases"}'
    )
    parser.add_argument("--model", required=True, type=Path, metavar="DIR", help="the base model's folder")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="FILE", help="bundle to write")
    parser.add_argument("--name", default="facts", help="the bundle's name (facts)")
    parser.add_argument("--version", help="the bundle's version (default: of the facts' digest)")
    parser.add_argument("--steps", type=count_of, default=120, help="steps of the optimiser (120)")
    parser.add_argument("--lr", type=positive, default=0.01, help="highest learning rate of Adam (0.01)")
    parser.add_argument(
        "--kl-weight",
        type=weight,
        default=3.0,
        metavar="W",
        help="weight of the guard to the base model (3)",
    )
    parser.add_argument("--batch", type=count_of, default=16, metavar="N", help="facts per step (16)")
    parser.add_argument(
        "--replay-batch", type=count_of, default=4, metavar="N", help="replayed texts per step (4)"
    )
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="text to stay true to (default: the model writes its own)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of every random choice (0)")
    parser.add_argument(
        "--time-limit", type=positive, metavar="S", help="seconds for replay and training (no limit)"
    )
    parser.add_argument(
        "--threads", type=threads_of, metavar="N", help="compute threads (all available CPUs)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Trains and writes the bundle; 2 for input that can't be used, 1 where training fails."""
    from zerolayer_worker.anchors.facts import read_facts  # noqa: PLC0415  # torch comes after cheap checks
    from zerolayer_worker.common.json_lines import JsonLinesError  # noqa: PLC0415

    try:
        facts = read_facts(arguments.facts)
        version = arguments.version or facts.digest.removeprefix("sha256:")[:12]
        _check(arguments, version)
    except (JsonLinesError, _UsageError) as error:
        return _fail(str(error), 2)
    try:
        return _train(arguments, facts, version)
    except KeyboardInterrupt:
        return _fail("interrupted; no bundle was written (--time-limit keeps what is learnt by then)", 130)


class _UsageError(ValueError):
    """The arguments can't be used."""


def _check(arguments: argparse.Namespace, version: str) -> None:
    """What would fail only after minutes of training otherwise."""
    from zerolayer_worker.common.anchor import NAME_PATTERN  # noqa: PLC0415

    for flag, value in (("--name", arguments.name), ("--version", version)):
        if not re.fullmatch(NAME_PATTERN, value):
            raise _UsageError(f"{flag}: {value!r} is not of letters, digits, '.', '_', '-', at most 63")
    try:
        if not arguments.output.parent.is_dir() or arguments.output.is_dir():
            raise _UsageError(f"--output: {arguments.output} is no file in a folder that exists")
        with tempfile.TemporaryFile(dir=arguments.output.parent):
            pass
    except OSError as error:
        raise _UsageError(f"--output: {arguments.output}: {error.strerror or error}") from None


def _train(arguments: argparse.Namespace, facts: "FactFile", version: str) -> int:
    from zerolayer_worker.engine.threads import quiet_waiting  # noqa: PLC0415

    quiet_waiting()  # before torch is imported
    from zerolayer_worker.anchors.replay import ReplayError  # noqa: PLC0415
    from zerolayer_worker.anchors.training import TrainingError, TrainingSettings  # noqa: PLC0415
    from zerolayer_worker.anchors.workshop import Order, make  # noqa: PLC0415
    from zerolayer_worker.engine.device import fix_threads  # noqa: PLC0415
    from zerolayer_worker.models.chat_template import ChatTemplateError  # noqa: PLC0415
    from zerolayer_worker.models.folder import ModelFolderError  # noqa: PLC0415

    fix_threads(arguments.threads)
    settings = TrainingSettings(
        steps=arguments.steps,
        lr=arguments.lr,
        kl_weight=arguments.kl_weight,
        batch=arguments.batch,
        replayed=arguments.replay_batch,
        seed=arguments.seed,
    )
    order = Order(
        facts=facts,
        model=arguments.model,
        output=arguments.output,
        name=arguments.name,
        version=version,
        settings=settings,
        replay=arguments.replay,
        time_limit_s=arguments.time_limit,
    )
    try:
        made = make(order, say=_say, on_step=_Steps(settings.steps))
    except (ModelFolderError, ChatTemplateError, ReplayError) as error:
        return _fail(str(error), 2)
    except TrainingError as error:
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(f"{error.filename or arguments.output}: {error.strerror or error}", 1)
    _say(f"{made.steps} of {settings.steps} steps in {made.seconds:.0f} s, {made.bundle.size} bytes")
    sys.stdout.write(f"{made.bundle.digest}\n")
    return 0


class _Steps:
    """Tells of steps, at most every few seconds and of the last one."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._told = -EVERY_S

    def __call__(self, progress: "Progress") -> None:
        if progress.seconds - self._told < EVERY_S and progress.step != self._steps:
            return
        self._told = progress.seconds
        _say(
            f"step {progress.step}/{self._steps}, {progress.seconds:.0f} s: facts {progress.fact_loss:.3f}, "
            f"drift {progress.guard_loss:.3f} nats per token"
        )


def _say(message: str) -> None:
    sys.stderr.write(f"anchor train: {message}\n")
    sys.stderr.flush()


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"anchor train: {message}\n")
    return code
