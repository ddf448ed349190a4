"""`zerolayer-worker model fetch` and `model convert`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zerolayer_worker.commands import Subparsers

PATTERNS: Final = ("*.json", "*.safetensors", "*.jinja", "tokenizer.model", "*.txt")
"""What serving needs of a repository; other frameworks' copies of the weights stay where they are."""


def add_parser(commands: "Subparsers") -> None:
    """Adds the commands."""
    parser = commands.add_parser("model", help="bring a model into the form the server reads")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    fetch = actions.add_parser(
        "fetch", help="download from Hugging Face (HF_TOKEN, HF_ENDPOINT are honoured)"
    )
    fetch.add_argument("--repo", required=True, help="owner/name")
    fetch.add_argument("--revision", required=True, help="commit, tag or branch")
    fetch.add_argument("--dest", required=True, type=Path, help="folder to fill")
    fetch.set_defaults(run=run_fetch)
    convert = actions.add_parser("convert", help="write a GGUF file as a safetensors folder")
    convert.add_argument("gguf", type=Path, help="the GGUF file")
    convert.add_argument("--out", required=True, type=Path, help="folder to write")
    convert.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    convert.set_defaults(run=run_convert)


def run_fetch(arguments: argparse.Namespace) -> int:
    """Downloads what serving needs; a second run completes an interrupted first one."""
    from huggingface_hub import (  # noqa: PLC0415  # heavy, and `drain` must be fast
        snapshot_download,  # pyright: ignore[reportUnknownVariableType]  # its progress bar is untyped
    )
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415

    repo, revision = arguments.repo, arguments.revision
    try:
        snapshot_download(repo, revision=revision, local_dir=arguments.dest, allow_patterns=list(PATTERNS))
    except HfHubHTTPError as error:
        return _fail(f"{repo}@{revision}: {_first_line(error)}; check --repo, --revision and HF_TOKEN")
    except LocalEntryNotFoundError as error:
        return _fail(f"{repo}@{revision}: {_first_line(error)}; check the network and HF_ENDPOINT")
    except (OSError, ValueError) as error:
        return _fail(f"{repo}@{revision} → {arguments.dest}: {_first_line(error)}")
    if not (arguments.dest / "config.json").is_file() or not list(arguments.dest.glob("*.safetensors")):
        return _fail(
            f"{repo}@{revision} holds no config.json with *.safetensors; name a repository that does"
        )
    return 0


def run_convert(arguments: argparse.Namespace) -> int:
    """Converts; torch is needed for it."""
    from zerolayer_worker.models.gguf import convert_gguf  # noqa: PLC0415  # imports torch

    try:
        convert_gguf(arguments.gguf, arguments.out, arguments.dtype)
    except (OSError, ValueError) as error:
        return _fail(f"{arguments.gguf}: {_first_line(error)}")
    return 0


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _fail(message: str) -> int:
    sys.stderr.write(f"model: {message}\n")
    return 1
