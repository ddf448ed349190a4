"""The connection to the API server: few calls, every one with a timeout, errors as one exception."""

import json
import re
from typing import Any, Final, cast

import aiohttp
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.dynamic import DynamicClient

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import Kind
from zerolayer_operator.metrics import API_WRITES

Object = dict[str, Any]

NOT_FOUND: Final = 404
CONFLICT: Final = 409
UNAVAILABLE: Final = 503
REQUEST_TIMEOUT_S: Final = 15.0

_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_APPLY: Final = "application/apply-patch+yaml; charset=utf-8"
"""In full, so that the client library sends the text that it is given: what it makes itself, JSON in ASCII,
is no YAML where a character needs a pair of escapes."""

_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REFUSALS: Final = frozenset({400, 403, 413, 422})
_UNKNOWN_FIELD: Final = "field not declared in schema"
"""What a server-side apply says, with status 500, of a field that this API server is too old for."""
_WEBHOOK_FAILED: Final = "failed calling webhook"


class ApiServerError(Exception):
    """The API server refused a request or did not answer.

    Attributes:
        status: HTTP status, or 0 where there was no answer.
        message: What the API server says, fit for a user.
        refused: Whether asking again unchanged would get the same answer.
        by_webhook: Whether an admission webhook does not answer, which is none of the API server's business.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}" if status else message)
        self.status = status
        self.message = message
        self.refused = status in _REFUSALS or _UNKNOWN_FIELD in message
        self.by_webhook = not self.refused and _WEBHOOK_FAILED in message


class Kube:
    """The calls that the operator makes."""

    def __init__(self, client: ApiClient, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        # No discovery: every kind is known beforehand, and an aggregated API that is away must not matter.
        self._client = DynamicClient(client)
        self._timeout_s = timeout_s

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object, or ``None`` where there is none.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        return await self._get(kind, namespace, name, None)

    async def exists(self, kind: Kind, namespace: str, name: str) -> bool:
        """Whether the object exists; only its metadata crosses the wire, so a Secret's values stay put.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        return await self.metadata(kind, namespace, name) is not None

    async def metadata(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object without anything but its metadata, or ``None`` where there is none.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        return await self._get(kind, namespace, name, _METADATA_ONLY)

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server knows a kind that is not its own.

        Raises:
            ApiServerError: The API server fails or can't be reached.
        """
        try:
            answer = await self._request("get", f"/apis/{kind.api_version}")
        except ApiServerError as error:
            if error.status == NOT_FOUND:
                return False
            raise
        resources = cast("list[Object]", answer.get("resources") or [])
        return any(item["name"] == kind.plural for item in resources)

    async def registered(self, api_version: str) -> bool:
        """Whether somebody serves an API, be it away at the moment.

        Raises:
            ApiServerError: The API server fails or can't be reached.
        """
        try:
            await self._request("get", f"/apis/{api_version}")
        except ApiServerError as error:
            if error.status == NOT_FOUND:
                return False
            if error.status != UNAVAILABLE:
                raise
        return True

    async def list(
        self, kind: Kind, namespace: str, selector: str = "", *, name: str | None = None
    ) -> list[Object]:
        """All objects of a kind that a label selector matches; in every namespace if none is given.

        Args:
            kind: The kind.
            namespace: Where to look.
            selector: Labels that they have; any if empty.
            name: The one name to look for, which needs the right to list alone.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        answer = await self._request(
            "get",
            kind.path(namespace),
            label_selector=selector or None,
            field_selector=f"metadata.name={name}" if name else None,
        )
        found = cast("list[Object]", answer.get("items") or [])
        # Items of a list carry neither apiVersion nor kind.
        return [{"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in found]

    async def apply(
        self, kind: Kind, body: Object, *, subresource: str = "", dry_run: bool = False, force: bool = True
    ) -> Object:
        """Server-side apply with the operator's field manager; fields that it names become its own.

        Args:
            kind: The kind.
            body: What is applied.
            subresource: The part of the object that is applied to; the object itself if empty.
            dry_run: Whether only to be told what would become of it.
            force: Whether fields that somebody else has set are taken over; refused with `CONFLICT` if not.

        Returns:
            The object as the API server has it then.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        metadata = body["metadata"]
        if not dry_run:
            _count(kind, "apply")
        return await self._request(
            "patch",
            kind.path(metadata["namespace"], metadata["name"], subresource),
            body=_yaml(body),
            content_type=_APPLY,
            field_manager=names.FIELD_MANAGER,
            force_conflicts=force,
            dry_run="All" if dry_run else None,
        )

    async def scale(self, kind: Kind, namespace: str, name: str, replicas: int) -> None:
        """Set an object's size through its scale subresource.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        _count(kind, "scale")
        await self._request(
            "patch",
            kind.path(namespace, name, "scale"),
            body={"spec": {"replicas": replicas}},
            content_type="application/merge-patch+json",
            field_manager=names.FIELD_MANAGER,
        )

    async def create(self, kind: Kind, body: Object) -> bool:
        """Create an object; false where one of that name exists.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        _count(kind, "create")
        path = kind.path(body["metadata"]["namespace"])
        try:
            await self._request("post", path, body=body, field_manager=names.FIELD_MANAGER)
        except ApiServerError as error:
            if error.status == CONFLICT:
                return False
            raise
        return True

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        """Delete just this object, in the background; not another one that took its name.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        _count(kind, "delete")
        body = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self._request("delete", kind.path(namespace, name), body=body)
        except ApiServerError as error:
            if error.status not in {NOT_FOUND, CONFLICT}:
                raise

    async def _get(self, kind: Kind, namespace: str, name: str, accept: str | None) -> Object | None:
        headers = {"Accept": accept} if accept else {}
        try:
            return await self._request("get", kind.path(namespace, name), header_params=headers)
        except ApiServerError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def _request(
        self, method: str, path: str, *, body: Object | str | None = None, **parameters: Any
    ) -> Object:
        try:
            # The dynamic client is untyped.
            answer = await cast("Any", self._client).request(
                method, path, body=body, serializer=_plain, _request_timeout=self._timeout_s, **parameters
            )
        except ApiException as error:
            raise ApiServerError(int(cast("Any", error).status or 0), _message(error)) from error
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise ApiServerError(0, f"{type(error).__name__}: {error}") from error
        return cast("Object", answer)


def _plain(_client: object, data: Object) -> Object:
    return data


def _yaml(body: Object) -> str:
    """A body as JSON that is YAML as well: the API server reads what is applied as YAML.

    YAML has no pairs of escapes for characters beyond the basic plane, so those are written as they are, and
    none unescaped for what it can't print. A lone surrogate is no character at all.
    """
    text = _SURROGATE.sub("\ufffd", json.dumps(body, ensure_ascii=False))
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _count(kind: Kind, verb: str) -> None:
    API_WRITES.labels(kind=kind.kind, verb=verb).inc()


def _message(error: ApiException) -> str:
    """The ``message`` of the API server's answer, or its reason where the body is no Status object."""
    body = cast("Any", error).body
    try:
        text = body.decode() if isinstance(body, bytes) else body
        return _in_order(json.loads(text))
    except (TypeError, ValueError, KeyError):
        return str(cast("Any", error).reason)


def _in_order(status: Object) -> str:
    """The message of a Status object with its causes sorted: the API server tells several in any order."""
    message = str(status["message"])
    details = cast("Object", status.get("details") or {})
    causes = cast("list[Object]", details.get("causes") or [])
    what, invalid, _ = message.partition(" is invalid: ")
    if not invalid or len(causes) < 2:  # noqa: PLR2004 - one is in order
        return message
    said = sorted(f"{cause.get('field')}: {cause.get('message')}" for cause in causes)
    return f"{what}{invalid}{', '.join(said)}"
