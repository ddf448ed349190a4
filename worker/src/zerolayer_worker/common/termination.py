"""The last word of a process, where Kubernetes looks for it."""

import contextlib
from pathlib import Path
from typing import Final

TERMINATION_LOG: Final = Path("/dev/termination-log")
"""The kubelet mounts this file into every container and shows its content as the termination message."""


def leave_message(message: str, path: Path = TERMINATION_LOG) -> None:
    """Writes why the process ends; outside of a container, where the file is missing, does nothing."""
    with contextlib.suppress(OSError):
        if path.exists():
            path.write_text(message + "\n", encoding="utf-8")
