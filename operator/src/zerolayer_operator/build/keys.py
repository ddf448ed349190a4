"""How API keys get into a pod."""

from typing import Final

from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.build.meta import Object

KEYS_PATH: Final = "/var/run/zerolayer/api-keys"
KEYS_MOUNT: Final[Object] = {"name": "api-keys", "mountPath": KEYS_PATH, "readOnly": True}


def key_volumes(spec: PoolSpec) -> list[Object]:
    """The volume with the keys that the spec names, or with the one that it names."""
    reference = spec.api_key_secret_ref
    if reference is None:
        return []
    secret: Object = {"secretName": reference.name, "defaultMode": 0o440}
    if reference.key is not None:
        secret["items"] = [{"key": reference.key, "path": reference.key}]
    return [{"name": "api-keys", "secret": secret}]
