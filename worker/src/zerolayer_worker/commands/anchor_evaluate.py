"""`zerolayer-worker anchor evaluate`."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zerolayer_worker.commands.arguments import threads_of

if TYPE_CHECKING:
    from zerolayer_worker.anchors.bundle import Bundle
    from zerolayer_worker.anchors.evaluation import Comparison, Recall
    from zerolayer_worker.anchors.facts import FactFile
    from zerolayer_worker.commands import Subparsers

SHOWN_MISSES: Final = 20


def add_parser(actions: "Subparsers") -> None:
    """Adds the command."""
    parser = actions.add_parser(
        "evaluate",
        help="measure what a bundle knows, and what it costs",
        description="Asks facts and paraphrases of the base model and of the bundle, and compares how likely "
        "unrelated text is to them.",
    )
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="the bundle's file")
    parser.add_argument("--model", required=True, type=Path, metavar="DIR", help="the base model's folder")
    parser.add_argument(
        "--facts", required=True, type=Path, metavar="FACTS.jsonl", help="the facts, as for `train`"
    )
    parser.add_argument(
        "--unrelated", type=Path, metavar="FILE", help="text that must stay as likely (default: own prose)"
    )
    parser.add_argument("--json", action="store_true", help="write the figures as JSON")
    parser.add_argument(
        "--record", action="store_true", help="keep the figures in the bundle, whose digest changes by it"
    )
    parser.add_argument(
        "--threads", type=threads_of, metavar="N", help="compute threads (all available CPUs)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluates; 2 for input that can't be used."""
    from zerolayer_worker.anchors.facts import read_facts  # noqa: PLC0415  # torch comes after cheap checks
    from zerolayer_worker.common.json_lines import JsonLinesError  # noqa: PLC0415
    from zerolayer_worker.engine.threads import quiet_waiting  # noqa: PLC0415

    try:
        facts = read_facts(arguments.facts)
    except JsonLinesError as error:
        return _fail(str(error))
    quiet_waiting()  # before torch is imported
    from zerolayer_worker.anchors.replay import ReplayError  # noqa: PLC0415
    from zerolayer_worker.common.anchor import BundleError  # noqa: PLC0415
    from zerolayer_worker.engine.device import fix_threads  # noqa: PLC0415
    from zerolayer_worker.models.chat_template import ChatTemplateError  # noqa: PLC0415
    from zerolayer_worker.models.folder import ModelFolderError  # noqa: PLC0415

    fix_threads(arguments.threads)
    try:
        return _evaluate(arguments, facts)
    except (BundleError, ModelFolderError, ChatTemplateError, ReplayError, OSError) as error:
        return _fail(str(error))


def _evaluate(arguments: argparse.Namespace, facts: "FactFile") -> int:
    from zerolayer_worker.anchors.bundle import read_bundle, write_bundle  # noqa: PLC0415  # imports torch
    from zerolayer_worker.anchors.evaluation import compare, own_text  # noqa: PLC0415
    from zerolayer_worker.anchors.replay import read_text_file  # noqa: PLC0415

    bundle = read_bundle(arguments.bundle)
    text = own_text() if arguments.unrelated is None else read_text_file(arguments.unrelated)
    found = compare(arguments.model, bundle, facts.facts, text)
    if arguments.record:
        figures = bundle.metadata.evaluation | found.recorded()
        metadata = bundle.metadata.model_copy(update={"evaluation": figures})
        bundle = write_bundle(arguments.bundle, bundle.tensors, metadata)
    text = json.dumps(_report(bundle, found)) + "\n" if arguments.json else _table(bundle, found)
    sys.stdout.write(text)
    return 0


def _report(bundle: "Bundle", found: "Comparison") -> dict[str, object]:
    missed = dict.fromkeys(found.anchored.questions.missed + found.anchored.paraphrases.missed)
    return {
        "bundle": {
            "name": bundle.metadata.name,
            "version": bundle.metadata.version,
            "digest": bundle.digest,
            "bytes": bundle.size,
        },
        "questions": _recall(found.base.questions, found.anchored.questions),
        "paraphrases": _recall(found.base.paraphrases, found.anchored.paraphrases),
        "perplexity": {
            "base": round(found.base.perplexity, 3),
            "anchored": round(found.anchored.perplexity, 3),
            "ratio": round(found.perplexity_ratio, 4),
        },
        "missed": list(missed)[:SHOWN_MISSES],
    }


def _recall(base: "Recall", anchored: "Recall") -> dict[str, object]:
    rates = {"base": base.rate, "anchored": anchored.rate} if base.asked else {"base": None, "anchored": None}
    return {"asked": base.asked, **rates}


def _table(bundle: "Bundle", found: "Comparison") -> str:
    """The figures for people."""
    base, anchored, name = found.base, found.anchored, bundle.metadata
    rows = [("", "base", "anchored")]
    for title, before, after in (
        ("questions", base.questions, anchored.questions),
        ("paraphrases", base.paraphrases, anchored.paraphrases),
    ):
        if before.asked:
            rows.append((f"hits on {before.asked} {title}", f"{before.rate:.1%}", f"{after.rate:.1%}"))
    rows.append(("perplexity of unrelated text", f"{base.perplexity:.2f}", f"{anchored.perplexity:.2f}"))
    lines = [f"{title:32}{before:>10}{after:>10}" for title, before, after in rows]
    head = f"{name.name} {name.version}, {bundle.size} bytes, {bundle.digest}"
    return "\n".join([head, *lines, f"perplexity ratio {found.perplexity_ratio:.3f}"]) + "\n"


def _fail(message: str) -> int:
    sys.stderr.write(f"anchor evaluate: {message}\n")
    return 2
