"""Values out of Secrets."""

import base64
import binascii

from zerolayer_operator.api.kinds import SECRET
from zerolayer_operator.api.model import SecretKeyReference
from zerolayer_operator.kube import ApiServerError, Kube
from zerolayer_operator.observe.access import section


class SecretValueError(Exception):
    """There is no such value; the message says what to do."""


async def secret_text(kube: Kube, namespace: str, reference: SecretKeyReference, field: str) -> str:
    """What a key of a Secret holds, as text without spaces around it.

    Args:
        kube: The API server.
        namespace: The Secret's.
        reference: Names the Secret and its key.
        field: The field of the spec that does, for people.

    Raises:
        SecretValueError: The Secret or its key does not exist, may not be read, or holds no text.
        ApiServerError: The API server can't be reached.
    """
    try:
        secret = await kube.get(SECRET, namespace, reference.name)
    except ApiServerError as error:
        if not error.refused:
            raise
        raise SecretValueError(
            f"Secret {reference.name} can't be read: {error.message}; let the operator read it, or correct "
            f"{field}"
        ) from error
    encoded = section(secret, "data").get(reference.key)
    if encoded is None:
        raise SecretValueError(
            f"Secret {reference.name} has no key {reference.key}; correct {field} or add the key"
        )
    try:
        return base64.b64decode(encoded).decode().strip()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise SecretValueError(f"key {reference.key} of Secret {reference.name} is no text") from error
