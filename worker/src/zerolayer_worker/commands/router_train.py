"""`zerolayer-worker router train`."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zerolayer_worker.commands.arguments import count_of, threads_of

if TYPE_CHECKING:
    from zerolayer_worker.commands import Subparsers

EVERY_S: Final = 5.0


def add_parser(actions: "Subparsers") -> None:
    """Adds the command."""
    parser = actions.add_parser(
        "train",
        help="fit a router to a model",
        description="Observes a model over texts, and fits the map from its states to its next token's "
        "entropy. The same texts and threads give the same file.",
    )
    parser.add_argument("--model", required=True, type=Path, metavar="DIR", help="the model's folder")
    parser.add_argument(
        "--texts",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="texts to learn from (default: none but its own)",
    )
    parser.add_argument(
        "--no-own-text", action="store_true", help="don't let the model write text of its own to learn from"
    )
    parser.add_argument(
        "--windows", type=count_of, default=240, metavar="N", help="pieces of 128 tokens of the texts (240)"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="file to write")
    parser.add_argument(
        "--threads", type=threads_of, metavar="N", help="compute threads (all available CPUs)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Trains and writes the file; 2 for input that can't be used, 1 where it can't be written."""
    if arguments.no_own_text and not arguments.texts:
        return _fail("--no-own-text leaves nothing to learn from; name --texts", 2)
    if not arguments.out.parent.is_dir() or arguments.out.is_dir():
        return _fail(f"--out: {arguments.out} is no file in a folder that exists", 2)
    from zerolayer_worker.engine.threads import quiet_waiting  # noqa: PLC0415

    quiet_waiting()  # before torch is imported
    from zerolayer_worker.anchors.replay import ReplayError  # noqa: PLC0415
    from zerolayer_worker.models.chat_template import ChatTemplateError  # noqa: PLC0415
    from zerolayer_worker.models.folder import ModelFolderError  # noqa: PLC0415
    from zerolayer_worker.routing.material import MaterialError  # noqa: PLC0415
    from zerolayer_worker.sampling.router_file import RouterError  # noqa: PLC0415

    try:
        return _train(arguments)
    except (ModelFolderError, ChatTemplateError, ReplayError, MaterialError) as error:
        return _fail(str(error), 2)
    except RouterError as error:
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(f"{error.filename or arguments.out}: {error.strerror or error}", 1)


def _train(arguments: argparse.Namespace) -> int:
    from zerolayer_worker.engine.device import fix_threads  # noqa: PLC0415  # imports torch
    from zerolayer_worker.models.dense import load_dense  # noqa: PLC0415
    from zerolayer_worker.models.digest import folder_digest  # noqa: PLC0415
    from zerolayer_worker.models.tokenizer import ModelTokenizer  # noqa: PLC0415
    from zerolayer_worker.routing.material import observe, of_files, of_the_models_own  # noqa: PLC0415
    from zerolayer_worker.routing.training import train  # noqa: PLC0415
    from zerolayer_worker.sampling.router_file import write_router  # noqa: PLC0415

    fix_threads(arguments.threads)
    model, tokenizer = load_dense(arguments.model), ModelTokenizer(arguments.model)
    texts = of_files(arguments.texts, tokenizer, arguments.windows) if arguments.texts else []
    if not arguments.no_own_text:
        _say("letting the model write text of its own")
        texts += of_the_models_own(model, tokenizer)
    material = observe(model, texts, _Progress())
    trained = train(material, folder_digest(arguments.model))
    written = write_router(arguments.out, trained.hidden, trained.embedding, trained.metadata)
    _say(
        f"{len(material)} tokens; a held-back tenth: R² {trained.metadata.r2:.3f}; {written.size} bytes, "
        f"{written.digest}"
    )
    return 0


class _Progress:
    """Tells how far it is, at most every few seconds."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def __call__(self, done: int, of: int) -> None:
        if time.monotonic() - self._told < EVERY_S:
            return
        self._told = time.monotonic()
        _say(f"observed {done} of {of} texts")


def _say(message: str) -> None:
    sys.stderr.write(f"router train: {message}\n")
    sys.stderr.flush()


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"router train: {message}\n")
    return code
