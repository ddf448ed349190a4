"""Keeps tests off clusters that are not theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from pathlib import Path


class ForeignContextError(RuntimeError):
    """A kubeconfig points at a cluster that the tests did not start."""


def require_own_context(kubeconfig: Path, cluster: str) -> None:
    """Check that a kubeconfig leads to the test suite's own cluster and to nowhere else.

    Args:
        kubeconfig: to check.
        cluster: name of the suite's cluster.

    Raises:
        ForeignContextError: its current context, or any other in it, is another cluster's.
    """
    content = yaml.safe_load(kubeconfig.read_text())
    contexts = {content.get("current-context"), *(context["name"] for context in content["contexts"])}
    if foreign := contexts - {f"zerolayer-{cluster}", f"kind-{cluster}"}:
        raise ForeignContextError(
            f"{kubeconfig} leads to {foreign}, not to {cluster}: refusing to test there"
        )
