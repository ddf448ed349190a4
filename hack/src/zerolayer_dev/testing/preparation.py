"""Builds what a suite's fixtures need before the first test starts, so that no test's time limit runs."""

from collections.abc import Callable
from typing import Any

import pytest

from zerolayer_dev.cluster.locks import held
from zerolayer_dev.paths import cache_dir


def prepare(session: pytest.Session, fixture: str, build: Callable[[], object]) -> None:
    """Builds once the tests are collected, where one of them will use a fixture.

    Call it from the `pytest_collection_finish` of the conftest that defines the fixture. What the build says
    of its progress is shown. Processes that share a run's tests build one after the other: not all of what
    installs things can wait for itself.

    Args:
        session: that has collected its tests.
        fixture: by its name.
        build: does nothing where everything is there.

    Raises:
        Exception: whatever the build raises; it ends the session.
    """
    needed = any(fixture in getattr(item, "fixturenames", ()) for item in session.items)
    if session.config.option.collectonly or not needed:
        return
    capture: Any = session.config.pluginmanager.getplugin("capturemanager")
    with held(cache_dir() / "preparation.lock"), capture.global_and_fixture_disabled():
        build()
