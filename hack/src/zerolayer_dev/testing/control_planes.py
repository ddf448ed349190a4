"""API servers for integration tests, with the custom resource defined."""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from zerolayer_dev.cluster import api as clusters
from zerolayer_dev.cluster import launch
from zerolayer_dev.cluster.layout import Size
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing.guard import require_own_context
from zerolayer_dev.testing.waiting import wait_for
from zerolayer_operator.api.names import GROUP


@contextmanager
def control_plane(name: str, flags: Mapping[str, Sequence[str]] | None = None) -> Iterator[clusters.Cluster]:
    """Yields an API server, etcd, controller manager and scheduler that end with this process.

    Tests that break one of these need a cluster of their own: clients of a shared one would still wait
    between two attempts, or have ended, when the next test begins.

    Args:
        name: tells the clusters of one test run apart.
        flags: more flags by component; such a cluster is always a local one.
    """
    own = f"{name}-{os.getpid()}"
    if flags:
        cluster: clusters.Cluster = launch.up(own, Size.CONTROL_PLANE, tied=True, flags=flags)
    else:
        cluster = clusters.up(own, Size.CONTROL_PLANE, tied=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(cluster.kubeconfig))
        require_own_context(cluster.kubeconfig, cluster.name)
        define_pools(cluster)
        yield cluster
    cluster.down()


def define_pools(cluster: clusters.Cluster) -> None:
    """Defines the custom resource, and waits until it can be used."""
    for path in sorted((repo_root() / "crds").glob("*.yaml")):
        cluster.kubectl("create", f"--filename={path}")
    # A definition has no conditions at all at first, which the second command can't bear.
    cluster.kubectl("wait", "--for=jsonpath={.status.acceptedNames.plural}=zerolayerpools", "crd", "--all")
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
    # What `kubectl explain` reads is published a moment later.
    wait_for(
        lambda: cluster.kubectl("get", "--raw", "/openapi/v3"),
        until=lambda published: f"apis/{GROUP}/" in published,
        what=f"the schema of {GROUP}",
        seconds=60,
    )


@contextmanager
def new_namespace(cluster: clusters.Cluster, prefix: str) -> Iterator[str]:
    """Yields a new namespace's name, once the controller manager has made its default service account.

    That one backs off for up to a minute where a test before took the API server away.
    """
    name = f"{prefix}-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("-n", name, "wait", "--for=create", "serviceaccount/default", "--timeout=90s")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
