"""Where the developer tools keep things: the checkout, and the cache outside of it."""

from __future__ import annotations

import os
from pathlib import Path


def repo_root() -> Path:
    """Return the root of the checkout this package is installed from (editable)."""
    return Path(__file__).resolve().parents[3]


def cache_dir() -> Path:
    """Return the cache folder, outside of the checkout so that a fresh clone finds it filled.

    `ZEROLAYER_CACHE` names it; otherwise it is `~/.cache/zerolayer`. Inside lie
    `bin/<component>-<version>/`, `images/`, `models/`, `clusters/<name>/` and
    `containerd/<n>/`.
    """
    configured = os.environ.get("ZEROLAYER_CACHE")
    path = Path(configured).expanduser() if configured else Path.home() / ".cache" / "zerolayer"
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()
