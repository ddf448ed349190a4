"""The command `zerolayer-operator`: reads the settings, sets up logs and hands over to the process.

What takes time to import comes after the settings were found good, so that bad ones are told at once.
"""

import argparse
import asyncio
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from pydantic import ValidationError

from zerolayer_operator import logs
from zerolayer_operator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_BAD_SETTINGS = 2


def main(arguments: "Sequence[str] | None" = None) -> None:
    """Runs the operator until it is told to stop.

    Exit codes: 0 after SIGTERM or SIGINT, 2 for bad settings, 3 for a lost Lease, 1 for everything else.
    """
    _parser().parse_args(arguments)
    try:
        settings = Settings()  # pyright: ignore[reportCallIssue] - filled from the environment
    except ValidationError as error:
        sys.stderr.write(f"zerolayer-operator: {describe(error)}\n")
        sys.exit(EXIT_BAD_SETTINGS)
    logs.configure(settings.log_level)
    from zerolayer_operator.process import run  # noqa: PLC0415

    asyncio.run(run(settings))


def describe(error: ValidationError) -> str:
    """Names every bad environment variable and what is wrong with it, in one line."""
    prefix = Settings.model_config.get("env_prefix", "")
    problems = (
        f"{prefix}{str(item['loc'][0]).upper()}: {item['msg'][:1].lower()}{item['msg'][1:]}"
        for item in error.errors(include_url=False, include_input=False)
    )
    return "bad settings: " + "; ".join(problems)


def _parser() -> argparse.ArgumentParser:
    """A command line without options of its own; `--help` lists the environment variables."""
    prefix = Settings.model_config.get("env_prefix", "")
    lines = [
        f"  {prefix}{name.upper()}\n      {field.description}"
        for name, field in Settings.model_fields.items()
    ]
    parser = argparse.ArgumentParser(
        prog="zerolayer-operator",
        description="Turns ZeroLayerPools into running inference workers.\n\nenvironment:\n"
        + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version("zerolayer-operator"))
    return parser


if __name__ == "__main__":
    main()
