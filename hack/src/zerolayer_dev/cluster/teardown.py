"""Ends a cluster, however much of it still runs, and removes what it left on the host."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from zerolayer_dev.cluster import host
from zerolayer_dev.cluster.layout import clusters_dir
from zerolayer_dev.cluster.record import Record

if TYPE_CHECKING:
    from pathlib import Path

    from zerolayer_dev.cluster.layout import State


def lock() -> Path:
    """Return the lock that whoever starts or removes clusters holds."""
    return clusters_dir() / ".lock"


def remove(state: State) -> None:
    """End what runs in a cluster's folder and remove all its traces; the lock is held."""
    record = Record.read(state)
    if record is not None:
        for process in (record.outer, record.init):
            process.end()
        host.unlink(record.slot)
    host.remove_cgroups(state.root.name)
    shutil.rmtree(state.root, ignore_errors=record is None)
