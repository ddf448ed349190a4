"""Names that the operator, its charts and people's dashboards rely on."""

from typing import Final

GROUP: Final = "zerolayer.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "ZeroLayerPool"
PLURAL: Final = "zerolayerpools"
SINGULAR: Final = "zerolayerpool"
SHORT_NAME: Final = "zlp"

FIELD_MANAGER: Final = "zerolayer-operator"

LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_POOL: Final = f"{GROUP}/pool"
LABEL_REVISION: Final = f"{GROUP}/revision"

LABEL_GOLDEN: Final = f"{GROUP}/golden"
"""On what asks a pool's golden set: the pool. Its pods have no `LABEL_POOL`: they are no workers."""

GOLDEN_NAME: Final = "zerolayer-golden"
"""Value of ``app.kubernetes.io/name`` on pods that ask a golden set, and the name of their container."""

PROMETHEUS_POOL: Final = "zerolayer_dev_pool"
"""The label `LABEL_POOL` as Prometheus has it."""

PROMETHEUS_REVISION: Final = "zerolayer_dev_revision"
"""The same of `LABEL_REVISION`."""

WORKER_NAME: Final = "zerolayer-worker"
"""Value of ``app.kubernetes.io/name`` on children, and the name of the worker's container."""

COPY_ANCHOR: Final = "copy-anchor"
"""The container that copies a bundle out of an image, where nodes can't mount one."""

ANNOTATION_APPLIED: Final = f"{GROUP}/applied-config"
"""Hash of the configuration last applied to a child; a difference means something was added or given up."""

ANNOTATION_TEMPLATE: Final = f"{GROUP}/pod-template"
"""The pod template a revision was made with; hand edits are put back to it, upgrades leave it alone."""

ANNOTATION_QUERY: Final = f"{GROUP}/metric-query"
"""What an autoscaler's external metric stands for, as PromQL, for whoever serves it."""

ANNOTATION_FROZEN: Final = f"{GROUP}/frozen-inputs"
"""What was resolved once for a revision (images, model commit), so that it outlives its sources."""

ANNOTATION_PROMOTE: Final = f"{GROUP}/promote"
"""A person's wish that a revision takes over now; its value is the revision."""

ANNOTATION_ROLL_BACK: Final = f"{GROUP}/rollback"
"""A person's wish that a revision is left; its value is that revision."""

ANNOTATION_ANCHOR_DIGEST: Final = f"{GROUP}/anchor-digest"
"""On the copy of a bundle: the digest of what it holds."""

HEADER_REVISION: Final = "zero-layer-revision"
"""Request header by which a conversation stays with the revision that answered it before."""

HEADER_ANCHOR: Final = "zero-layer-anchor"
"""Request header that names the version of the knowledge to answer from."""

ANNOTATION_GOLDEN_RUN: Final = f"{GROUP}/golden-run"
"""On the Job that asks a golden set: for which update, and which set."""

ANNOTATION_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Kubernetes' own: of a ReplicaSet's ready pods those of the lowest cost go first."""

MAX_POOL_NAME: Final = 40


def owned_by_pool(pool: str) -> dict[str, str]:
    """Labels of every child of a pool."""
    return {
        LABEL_NAME: WORKER_NAME,
        LABEL_INSTANCE: pool,
        LABEL_MANAGED_BY: FIELD_MANAGER,
        LABEL_POOL: pool,
    }


def revision_selector(pool: str, revision: str) -> dict[str, str]:
    """Labels that select the pods of one revision of a pool and no others."""
    return {LABEL_POOL: pool, LABEL_REVISION: revision}


def selector_string(selector: dict[str, str]) -> str:
    """A label selector in the form that list calls and the scale subresource take."""
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


def deployment_name(pool: str, revision: str) -> str:
    """Name of a revision's Deployment."""
    return f"{pool}-{revision}"


def anchor_copy_name(pool: str, revision: str) -> str:
    """Name of the ConfigMap that holds the copy of a revision's bundle."""
    return f"{pool}-{revision}-anchor"


def golden_name(pool: str, revision: str) -> str:
    """Name of the Job that asks a golden set while a revision is introduced, and of its NetworkPolicy."""
    return f"{pool}-{revision}-golden"


def golden_labels(pool: str) -> dict[str, str]:
    """Labels of the pods that ask a pool's golden set."""
    return {
        LABEL_NAME: GOLDEN_NAME,
        LABEL_INSTANCE: pool,
        LABEL_MANAGED_BY: FIELD_MANAGER,
        LABEL_GOLDEN: pool,
    }


def revision_service_name(pool: str, revision: str) -> str:
    """Name of the Service of one revision, for gateways."""
    return f"{pool}-{revision}"


def canary_service_name(pool: str) -> str:
    """Name of the Service of the revision that is tried out."""
    return f"{pool}-canary"


def metrics_service_name(pool: str) -> str:
    """Name of the headless Service that Prometheus scrapes."""
    return f"{pool}-metrics"
