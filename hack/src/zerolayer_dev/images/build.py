"""Builds the images whose inputs changed, and keeps one archive of each in the cache."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from zerolayer_dev.cluster.binaries import ensure
from zerolayer_dev.cluster.locks import held
from zerolayer_dev.images.engines import HeavyStage, Request
from zerolayer_dev.images.progress import report
from zerolayer_dev.images.specs import IMAGES, reference
from zerolayer_dev.paths import cache_dir, repo_root

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zerolayer_dev.images.engines import Engine
    from zerolayer_dev.images.inputs import Inputs

_PRUNED_AFTER_S = 1800.0


def build(names: Iterable[str], engine: Engine) -> list[Path]:
    """Build what is missing; returns the archive of each image, in the order of `names`.

    Raises:
        BuildError: A build failed.
    """
    wanted = list(names)
    ensure(program for name in wanted for program in IMAGES[name].binaries)
    return [build_one(name, engine) for name in wanted]


def build_one(name: str, engine: Engine) -> Path:
    """The image's archive, `$CACHE/images/NAME-KEY.tar`, built unless it is there.

    The key names everything that the image is made of, so an archive that is there is up to date.
    """
    started = time.monotonic()
    spec = IMAGES[name]
    inputs = spec.inputs(repo_root())
    further = (engine.base_key, *(f"{arg}={value}" for arg, value in spec.build_args.items()))
    key = inputs.digest(*further)
    heavy = (
        HeavyStage(spec.heavy_stage, inputs.without(spec.light).digest(*further))
        if spec.heavy_stage
        else None
    )
    request = Request(name, reference(name), {}, spec.build_args, heavy)
    folder = cache_dir() / "images"
    archive = folder / f"{name}-{key}.tar"
    if archive.exists():  # whoever needs only this one need not wait for the builds of others
        report(f"{name}: up to date")
        return archive
    with held(folder / ".lock"):
        if archive.exists():
            report(f"{name}: built by another process meanwhile")
            return archive
        report(f"{name}: building …")
        _make(request, engine, inputs, archive)
        prune(folder, name, archive, time.time())
    megabytes = archive.stat().st_size / 1e6
    report(f"{name}: built in {time.monotonic() - started:.0f} s, archive {megabytes:.0f} MB")
    return archive


def _make(request: Request, engine: Engine, inputs: Inputs, archive: Path) -> None:
    unfinished = archive.with_name(f".{archive.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{request.label}-", dir=archive.parent) as scratch:
            request = replace(request, contexts=inputs.lay_out(Path(scratch)))
            engine.build(request)
        started = time.monotonic()
        engine.save(request, unfinished)
        report(f"  {request.label} archive written in {time.monotonic() - started:.0f} s")
        unfinished.rename(archive)
    finally:
        unfinished.unlink(missing_ok=True)


def prune(folder: Path, name: str, kept: Path, now: float) -> None:
    """Remove the archives of older builds of the image, but none that somebody may be about to load."""
    own = re.compile(rf"{re.escape(name)}-[0-9a-f]{{16}}\.tar")
    for path in folder.iterdir():
        if path != kept and own.fullmatch(path.name) and now - path.stat().st_mtime > _PRUNED_AFTER_S:
            path.unlink()
