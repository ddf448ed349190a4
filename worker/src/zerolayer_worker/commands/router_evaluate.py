"""`zerolayer-worker router evaluate`."""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zerolayer_worker.commands.arguments import count_of, threads_of

if TYPE_CHECKING:
    from zerolayer_worker.commands import Subparsers
    from zerolayer_worker.routing.effect import Effect
    from zerolayer_worker.sampling.router_file import RouterFile

AT_ONCE: Final = 16
CONTEXT: Final = 256


def add_parser(actions: "Subparsers") -> None:
    """Adds the command."""
    parser = actions.add_parser(
        "evaluate",
        help="measure a router: R² on other text, and answers with it and at fixed temperatures",
        description="How much of the entropy's variance the router explains on texts that it was not trained "
        "on; and for ten open prompts, how many pairs of answers begin with the same 32 tokens, and how "
        "likely the model finds what it said, with the router and at fixed temperatures.",
    )
    parser.add_argument("router", type=Path, metavar="ROUTER", help="the router's file")
    parser.add_argument("--model", required=True, type=Path, metavar="DIR", help="the model's folder")
    parser.add_argument(
        "--texts", nargs="+", required=True, type=Path, metavar="FILE", help="texts it was not trained on"
    )
    parser.add_argument(
        "--windows", type=count_of, default=32, metavar="N", help="pieces of 128 tokens of the texts (32)"
    )
    parser.add_argument(
        "--answers", type=int, default=100, metavar="N", help="to each prompt; 0 measures R² alone (100)"
    )
    parser.add_argument("--json", action="store_true", help="write the figures as JSON")
    parser.add_argument(
        "--threads", type=threads_of, metavar="N", help="compute threads (all available CPUs)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluates; 2 for input that can't be used."""
    from zerolayer_worker.engine.threads import quiet_waiting  # noqa: PLC0415

    quiet_waiting()  # before torch is imported
    from zerolayer_worker.anchors.replay import ReplayError  # noqa: PLC0415
    from zerolayer_worker.models.folder import ModelFolderError  # noqa: PLC0415
    from zerolayer_worker.routing.material import MaterialError  # noqa: PLC0415
    from zerolayer_worker.sampling.router_file import RouterError  # noqa: PLC0415

    try:
        return _evaluate(arguments)
    except (RouterError, ModelFolderError, ReplayError, MaterialError, OSError) as error:
        sys.stderr.write(f"router evaluate: {error}\n")
        return 2


def _evaluate(arguments: argparse.Namespace) -> int:
    from zerolayer_worker.engine.device import fix_threads  # noqa: PLC0415  # imports torch
    from zerolayer_worker.models.config import read_config  # noqa: PLC0415
    from zerolayer_worker.models.digest import folder_digest  # noqa: PLC0415
    from zerolayer_worker.sampling.router_file import check_model, read_router  # noqa: PLC0415

    fix_threads(arguments.threads)
    file = read_router(arguments.router)
    size = read_config(arguments.model).hidden_size
    check_model(file, arguments.router, folder_digest(arguments.model), size)
    score = _held_out(arguments, file)
    effects = asyncio.run(_effects(arguments)) if arguments.answers else {}
    report = {
        "router": {"digest": file.digest, "bytes": file.size, "trained_on_tokens": file.metadata.tokens},
        "r2": round(score, 4),
        "answers_to_each_prompt": arguments.answers,
        "creative": {
            name: {"same_pairs": round(each.same_pairs, 4), "perplexity": round(each.perplexity, 3)}
            for name, each in effects.items()
        },
    }
    sys.stdout.write(json.dumps(report) + "\n" if arguments.json else _table(file, score, effects))
    return 0


def _held_out(arguments: argparse.Namespace, file: "RouterFile") -> float:
    from zerolayer_worker.models.dense import load_dense  # noqa: PLC0415
    from zerolayer_worker.models.tokenizer import ModelTokenizer  # noqa: PLC0415
    from zerolayer_worker.routing.material import observe, of_files  # noqa: PLC0415
    from zerolayer_worker.routing.training import score  # noqa: PLC0415

    model, tokenizer = load_dense(arguments.model), ModelTokenizer(arguments.model)
    return score(file, observe(model, of_files(arguments.texts, tokenizer, arguments.windows)))


async def _effects(arguments: argparse.Namespace) -> dict[str, "Effect"]:
    """Of the router, and of fixed temperatures, by name."""
    from zerolayer_worker.engine.config import EngineConfig  # noqa: PLC0415
    from zerolayer_worker.engine.launch import load_engine  # noqa: PLC0415
    from zerolayer_worker.routing.effect import FIXED, OPEN_PROMPTS, fixed, measure, steered  # noqa: PLC0415

    wanted = {"router": steered()} | {f"T {temperature}": fixed(temperature) for temperature in FIXED}
    config = EngineConfig(
        arguments.model, "evaluated", router_path=arguments.router, threads=arguments.threads,
        max_batch_size=AT_ONCE, max_queue=AT_ONCE, max_model_len=CONTEXT, consistency_share=0.0,
    )  # fmt: skip
    engine = await asyncio.to_thread(load_engine, config, lambda _stage: None)
    try:
        return {
            name: await measure(
                engine, params, prompts=OPEN_PROMPTS, answers=arguments.answers, at_once=AT_ONCE
            )
            for name, params in wanted.items()
        }
    finally:
        engine.close()


def _table(file: "RouterFile", score: float, effects: dict[str, "Effect"]) -> str:
    lines = [f"{file.digest}, {file.size} bytes", f"R² on held-out text {score:.3f}"]
    if effects:
        lines.append(f"{'creative':12}{'same pairs':>12}{'perplexity':>12}")
    lines += [f"{name:12}{each.same_pairs:>12.1%}{each.perplexity:>12.2f}" for name, each in effects.items()]
    return "\n".join(lines) + "\n"
