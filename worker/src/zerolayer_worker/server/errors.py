"""Errors a client sees, in the shape of the protocol it speaks."""

from enum import StrEnum
from http import HTTPStatus
from typing import Final

JsonObject = dict[str, object]


class Protocol(StrEnum):
    """Whose shapes an answer takes."""

    MESSAGES = "messages"
    OPENAI = "openai"


class ApiError(Exception):
    """A refusal or failure with its HTTP status.

    Attributes:
        status: HTTP status code.
        message: what is wrong, naming the field; may be shown to the client.
        param: the field at fault, where there is one.
        code: OpenAI's machine-readable word, where it differs from the status' usual one.
        retry_after: seconds after which another try makes sense.
        reason: a word for the metric of rejected requests; None where the client is at fault.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.retry_after = retry_after
        self.reason = reason

    def headers(self) -> dict[str, str]:
        """Headers of the answer beside the ones every answer has."""
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        if self.status in (408, 413):
            headers["connection"] = "close"
        return headers

    def render(self, protocol: Protocol, request_id: str) -> JsonObject:
        """The JSON object of the answer's body, or of the stream's error event."""
        if protocol is Protocol.MESSAGES:
            kind = _MESSAGES_TYPES.get(
                self.status,
                "api_error" if self.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error",
            )
            return {
                "type": "error",
                "error": {"type": kind, "message": self.message},
                "request_id": request_id,
            }
        kind, code = _OPENAI_TYPES.get(
            self.status,
            (
                "server_error"
                if self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
                else "invalid_request_error",
                None,
            ),
        )
        return {
            "error": {
                "message": self.message,
                "type": kind,
                "param": self.param,
                "code": self.code or code,
            }
        }


_MESSAGES_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_OPENAI_TYPES: Final[dict[int, tuple[str, str | None]]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "not_found"),
    405: ("invalid_request_error", "method_not_allowed"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}


def invalid(param: str, message: str, *, code: str | None = None) -> ApiError:
    """A 400 whose message begins with the field at fault."""
    return ApiError(400, f"{param}: {message}", param=param, code=code)


def overloaded(what: str, *, retry_after: int, reason: str) -> ApiError:
    """The 429 of a worker that has no place for a request; clients and gateways know it by its first word."""
    message = f"zero-layer: the worker is overloaded: {what}"
    return ApiError(429, message, retry_after=retry_after, reason=reason)


def model_not_found(model: str, served: str) -> ApiError:
    """The 404 for a model this pool does not serve; it lists what is served."""
    return ApiError(
        404,
        f"model: {model[:100]} is not served here. Served models: {served}",
        param="model",
        code="model_not_found",
    )
