"""`zerolayer-worker serve`."""

import argparse
import logging
import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from zerolayer_worker.commands import Subparsers

FLAGS: Final = {
    "model-path": "DIR",
    "builtin": "NAME",
    "model-name": "ID",
    "host": "ADDRESS",
    "port": "N",
    "ops-port": "N",
    "device": "cpu|cuda",
    "dtype": "auto|float32|bfloat16",
    "quantization": "none|int8|int4",
    "kernels": "auto|torch|native",
    "cuda-graphs": "true|false",
    "sampler": "auto|naive",
    "max-model-len": "TOKENS",
    "max-batch-size": "N",
    "max-queue": "N",
    "memory-utilization": "SHARE",
    "kv-cache-tokens": "TOKENS",
    "default-intent": "INTENT",
    "allowed-intents": "A,B,C",
    "api-key-dir": "DIR",
    "admin-key-file": "FILE",
    "revision": "HASH",
    "anchor-path": "FILE",
    "anchor-version": "VERSION",
    "anchor-digest": "sha256:…",
    "lora-path": "DIR",
    "skip-ska-lora": "true|false",
    "router-path": "FILE|none",
    "consistency-share": "SHARE",
    "warmup-prompt": "TEXT",
    "warmup-max-tokens": "N",
    "warmup-timeout-seconds": "S",
    "warmup-settle-ratio": "R",
    "drain-seconds": "S",
    "log-level": "LEVEL",
}
"""Names and placeholders; meaning, type and default of each are in `zerolayer_worker.config`."""


def add_parser(commands: "Subparsers") -> None:
    """Adds the command. Values stay text here: `config` validates flags and variables alike."""
    parser = commands.add_parser(
        "serve",
        help="serve a model",
        description="Every flag is also a variable: --max-queue is ZEROLAYER_MAX_QUEUE.",
        add_help=False,
    )
    parser.add_argument("-h", "--help", action=_Help, nargs=0, help="show this text")
    for name, placeholder in FLAGS.items():
        parser.add_argument(f"--{name}", metavar=placeholder, default=argparse.SUPPRESS, **_bare(placeholder))
    parser.add_argument(
        "--no-cuda-graphs", dest="cuda_graphs", action="store_const", const="false",
        default=argparse.SUPPRESS, help="the same as --cuda-graphs=false",
    )  # fmt: skip
    parser.set_defaults(run=run)


def _bare(placeholder: str) -> dict[str, Any]:
    """A switch may come without its value."""
    return {"nargs": "?", "const": "true"} if placeholder == "true|false" else {}


class _Help(argparse.Action):
    """Fetches meaning and default of each flag from the configuration only when they are asked for."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002
        values: object,  # noqa: ARG002
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        from zerolayer_worker.config import describe  # noqa: PLC0415

        texts = describe()
        for action in parser._actions:  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
            action.help = action.help or texts.get(action.dest)
        parser.print_help()
        parser.exit()


def run(arguments: argparse.Namespace) -> int:
    """Serves until told to stop; exit code 2 for a wrong configuration."""
    from zerolayer_worker.common.logs import configure_logging  # noqa: PLC0415  # `drain` must be fast
    from zerolayer_worker.common.termination import leave_message  # noqa: PLC0415
    from zerolayer_worker.config import ConfigError, load_config  # noqa: PLC0415

    given = {key: value for key, value in vars(arguments).items() if key.replace("_", "-") in FLAGS}
    try:
        config = load_config(given)
    except ConfigError as error:
        sys.stderr.write(f"serve: {error}\n")
        leave_message(f"serve: {error}")
        return 2
    configure_logging(config.log_level)
    from zerolayer_worker.engine.launch import load_engine  # noqa: PLC0415  # imports torch
    from zerolayer_worker.server.process import serve  # noqa: PLC0415

    code = serve(config, load_engine)
    logging.shutdown()
    sys.stdout.flush()
    # The loading thread and torch's own may still be busy; nothing of theirs is worth waiting for.
    os._exit(code)
