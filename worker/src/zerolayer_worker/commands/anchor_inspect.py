"""`zerolayer-worker anchor inspect`."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from zerolayer_worker.anchors.bundle import Bundle
    from zerolayer_worker.commands import Subparsers


def add_parser(actions: "Subparsers") -> None:
    """Adds the action."""
    parser = actions.add_parser("inspect", help="say what a bundle is, and what it says of itself")
    parser.add_argument("bundle", type=Path, metavar="FILE", help="the bundle's file")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints it; 2 for a file that is no bundle."""
    from zerolayer_worker.anchors.bundle import read_bundle  # noqa: PLC0415  # imports torch
    from zerolayer_worker.common.anchor import BundleError  # noqa: PLC0415

    try:
        bundle = read_bundle(arguments.bundle)
    except BundleError as error:
        sys.stderr.write(f"anchor inspect: {error}\n")
        return 2
    report = _report(bundle)
    sys.stdout.write(json.dumps(report) + "\n" if arguments.json else _table(report))
    return 0


def _report(bundle: "Bundle") -> dict[str, object]:
    about = bundle.metadata
    return {
        "name": about.name,
        "version": about.version,
        "digest": bundle.digest,
        "bytes": bundle.size,
        "baseModelDigest": about.base_model_digest,
        "created": about.created.isoformat(),
        "dtype": about.dtype,
        "trainingDataDigest": about.training_data_digest,
        "evaluation": about.evaluation,
        "tensors": len(bundle.tensors),
        "parameters": sum(tensor.numel() for tensor in bundle.tensors.values()),
        "notFinite": sum(int((~tensor.isfinite()).sum()) for tensor in bundle.tensors.values()),
    }


def _table(report: dict[str, object]) -> str:
    rows = [(key, value) for key, value in report.items() if value is not None and key != "evaluation"]
    figures = report["evaluation"]
    if isinstance(figures, dict):
        known = cast("dict[str, object]", figures)
        rows += [(f"evaluation.{key}", value) for key, value in known.items()]
    width = max(len(key) for key, _ in rows)
    return "".join(f"{key:{width}}  {value}\n" for key, value in rows)
