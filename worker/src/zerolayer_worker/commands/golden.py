"""`zerolayer-worker golden run`."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from zerolayer_worker.commands.arguments import count_of, positive, similarity, threads_of

if TYPE_CHECKING:
    from zerolayer_worker.commands import Subparsers
    from zerolayer_worker.golden.items import GoldenSet


def add_parser(commands: "Subparsers") -> None:
    """Adds the command and its action."""
    parser = commands.add_parser("golden", help="ask two revisions known questions")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_parser = actions.add_parser(
        "run",
        help="ask a golden set of both sides and report",
        description="Asks every question of both sides twice and writes a JSON report of at most 4 KiB to "
        "standard output and the termination log. Wrong answers are a result, not a failure.",
    )
    run_parser.add_argument("--set", required=True, type=Path, metavar="GOLDEN.jsonl", help="the questions")
    run_parser.add_argument("--blue", required=True, type=_url, metavar="URL", help="the serving revision")
    run_parser.add_argument("--green", required=True, type=_url, metavar="URL", help="the canary")
    run_parser.add_argument(
        "--model", required=True, type=Path, metavar="DIR", help="the base model, which compares answers"
    )
    run_parser.add_argument(
        "--api-key-file",
        type=Path,
        metavar="PATH",
        help="file with the key for both sides, or a folder of them",
    )
    run_parser.add_argument(
        "--concurrency", type=count_of, default=4, metavar="N", help="at once, per side (4)"
    )
    run_parser.add_argument("--timeout", type=positive, default=60.0, metavar="S", help="of one try (60)")
    run_parser.add_argument(
        "--tries", type=count_of, default=5, metavar="N", help="where a side is busy or away (5)"
    )
    run_parser.add_argument(
        "--threshold", type=similarity, metavar="X", help="least similarity (default: calibrated on blue)"
    )
    run_parser.add_argument(
        "--threads", type=threads_of, metavar="N", help="compute threads (all available CPUs)"
    )
    run_parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Asks and reports; 0 whatever the answers are, 2 for input that can't be used."""
    from zerolayer_worker.common.json_lines import JsonLinesError  # noqa: PLC0415  # torch comes after cheap checks
    from zerolayer_worker.golden.items import read_golden  # noqa: PLC0415

    try:
        golden = read_golden(arguments.set)
        key = _key(arguments.api_key_file)
    except JsonLinesError as error:
        return _fail(str(error))
    except (OSError, ValueError) as error:
        return _fail(f"--api-key-file: {error}")
    return _run(arguments, golden, key)


def _run(arguments: argparse.Namespace, golden: "GoldenSet", key: bytes | None) -> int:
    import httpx2  # noqa: PLC0415

    from zerolayer_worker.engine.threads import quiet_waiting  # noqa: PLC0415

    quiet_waiting()  # before torch is imported
    from zerolayer_worker.common.termination import leave_message  # noqa: PLC0415
    from zerolayer_worker.engine.device import fix_threads  # noqa: PLC0415
    from zerolayer_worker.golden.asking import Manners  # noqa: PLC0415
    from zerolayer_worker.golden.running import Judge, run_golden  # noqa: PLC0415
    from zerolayer_worker.golden.similarity import Embedder  # noqa: PLC0415
    from zerolayer_worker.models.folder import ModelFolderError  # noqa: PLC0415

    fix_threads(arguments.threads)
    try:
        embedder = Embedder(arguments.model)
    except ModelFolderError as error:
        return _fail(str(error))
    manners = Manners(arguments.concurrency, arguments.timeout, arguments.tries, key)
    judge = Judge(embedder, arguments.threshold)
    try:
        found = asyncio.run(run_golden(golden, arguments.blue, arguments.green, manners, judge=judge))
    except httpx2.InvalidURL as error:
        return _fail(f"--blue, --green: {error}")
    report = found.json()
    sys.stdout.write(report + "\n")
    leave_message(report)
    return 0


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known:
        raise argparse.ArgumentTypeError(f"{text} is no http or https URL")
    return text


def _key(path: Path | None) -> bytes | None:
    """A key as the server itself reads the file that holds it; of a folder of keys, any."""
    from zerolayer_worker.server.auth import KeyFormError, parse_key  # noqa: PLC0415

    if path is None:
        return None
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    problem = "holds no key"
    for file in files:
        if path != file and (file.name.startswith(".") or file.is_dir()):
            continue
        try:
            return parse_key(file.read_bytes())
        except KeyFormError as error:
            problem = str(error)
    raise ValueError(f"{path} {problem}")


def _fail(message: str) -> int:
    from zerolayer_worker.common.termination import leave_message  # noqa: PLC0415

    sys.stderr.write(f"golden run: {message}\n")
    leave_message(f"golden run: {message}")
    return 2
