"""The commands of `zerolayer-worker`; each module's `add_parser` is cheap, `run` imports what it needs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
