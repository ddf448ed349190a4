"""What every pod of a pool, and every container of one, has in common."""

from typing import Final

from zerolayer_operator.api.worker import WorkerSpec
from zerolayer_operator.build.meta import Object

TMP: Final = "/tmp"  # noqa: S108 - a folder of the pod's own
TMP_MOUNT: Final[Object] = {"name": "tmp", "mountPath": TMP}

RESTRICTED: Final[Object] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


USER_ID: Final = 65532


def pod_basics(account: str) -> Object:
    """What every pod of a pool has in common: an identity without rights, and the restricted level."""
    return {
        "serviceAccountName": account,
        "automountServiceAccountToken": False,
        # A Service named zerolayer would otherwise set ZEROLAYER_PORT, which the worker reads.
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "fsGroup": USER_ID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def environment(worker: WorkerSpec, *ours: Object) -> list[Object]:
    """Environment variables: the user's, and ours where the user sets none of that name."""
    wanted = list(worker.env or ())
    named = {item["name"] for item in wanted}
    # Libraries write caches below HOME, and the root file system is read-only.
    return [item for item in ({"name": "HOME", "value": TMP}, *ours) if item["name"] not in named] + wanted


def escaped(value: object) -> str:
    """A text as an argument: Kubernetes expands ``$(NAME)`` there, and it must arrive as it was written."""
    return str(value).replace("$", "$$")
