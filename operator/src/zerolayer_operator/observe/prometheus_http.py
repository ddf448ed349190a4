"""One question to Prometheus, for a thread: it ends when its time is over, whatever the other side does.

Imported on first use, by the thread: an operator whose pools need no Prometheus spends no memory on it.
"""

import io
import os
import socket
import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import requests
from prometheus_api_client.exceptions import PrometheusApiClientException
from prometheus_api_client.prometheus_connect import PrometheusConnect
from pydantic import BaseModel, ValidationError
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies
from urllib3.exceptions import HTTPError

from zerolayer_operator.logs import REDACTED
from zerolayer_operator.observe.load import STEP_S
from zerolayer_operator.observe.load_query import GarbageError, LoadSeries, read_series
from zerolayer_operator.observe.one_value import read_value
from zerolayer_operator.observe.prometheus import Access, LatePrometheusError, PrometheusError, Question
from zerolayer_operator.observe.wording import one_line

LIMIT_BYTES: Final = 1024 * 1024
"""About ten times what an hour of all figures takes."""

_LONGEST_ERROR: Final = 300
_OK: Final = 200
_REFUSALS: Final = frozenset({401, 403})

Answer = TypeVar("Answer")


def fetch(access: Access, question: Question, seconds: float) -> LoadSeries:
    """The answer to a question about a span.

    Raises:
        PrometheusError: There is none within so many seconds, or it is no answer to the query.
    """

    def ask(connection: Any) -> LoadSeries:
        result = connection.custom_query_range(
            question.query,
            start_time=datetime.fromtimestamp(question.first, UTC),
            end_time=datetime.fromtimestamp(question.end, UTC),
            step=str(STEP_S),
            params=_parameters(seconds),
        )
        return read_series(result, question.first, question.end)

    return _answered(access, seconds, ask)


def fetch_value(access: Access, query: str, seconds: float) -> float:
    """The one value that a query has now; not a number where that is its value.

    Raises:
        NoValueError: It has none, or several.
        PrometheusError: There is no answer within so many seconds, or it is no answer to the query.
    """

    def ask(connection: Any) -> float:
        return read_value(connection.custom_query(query, params=_parameters(seconds)))

    return _answered(access, seconds, ask)


def _answered(access: Access, seconds: float, ask: Callable[[Any], Answer]) -> Answer:
    with _Deadline(seconds) as deadline:
        try:
            with _connection(access, seconds, deadline) as connection:
                return ask(connection)
        except PrometheusError:
            raise
        except (GarbageError, PrometheusApiClientException, LookupError, RecursionError) as error:
            raise _garbage() from error
        except (requests.RequestException, HTTPError, OSError, TypeError, ValueError) as error:
            if deadline.over:
                raise LatePrometheusError(seconds) from error
            raise _failure(error) from error


def _connection(access: Access, seconds: float, deadline: "_Deadline") -> PrometheusConnect:
    headers = {"Accept-Encoding": "identity"}
    if access.token is not None:
        headers["Authorization"] = f"Bearer {access.token}"
    return PrometheusConnect(
        access.address.rstrip("/"), headers, session=_Session(access, deadline), timeout=cast("int", seconds)
    )


def _parameters(seconds: float) -> dict[str, str]:
    # Thanos would leave out what it can't reach, and say so where nobody looks.
    return {"timeout": f"{seconds:g}", "partial_response": "false"}


def _garbage() -> PrometheusError:
    return PrometheusError("answers with what is no answer to a query; check its address, path included")


def _failure(error: Exception) -> PrometheusError:
    if isinstance(error, requests.exceptions.SSLError):
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return PrometheusError("has a certificate that is not trusted; name the CA that signed it")
        return PrometheusError("refuses the TLS connection; check whether it wants a certificate, or no TLS")
    if isinstance(error, requests.exceptions.InvalidJSONError | TypeError) or not isinstance(
        error, requests.RequestException | HTTPError | OSError
    ):
        return _garbage()
    return PrometheusError(
        f"can't be reached ({type(error).__name__}); check its address, and that the operator may reach it"
    )


class _Refusal(BaseModel):
    error: str


class _Deadline:
    """Breaks connections off when the time is over: timeouts of sockets begin anew with every byte."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()

    def watch(self, connected: object) -> None:
        """Breaks this connection off too."""
        if isinstance(connected, socket.socket):
            with self._lock:
                self._sockets.append(connected)
                if self.over:
                    _break_off(connected)

    def _end(self) -> None:
        with self._lock:
            self.over = True
            for connected in self._sockets:
                _break_off(connected)


def _break_off(connected: socket.socket) -> None:
    try:
        # Not by the method of a TLS socket, which takes the reading thread's TLS state away.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
    except OSError:
        return  # it is over already


class _Adapter(HTTPAdapter):
    """Connections that trust just one CA, where one is given, and that the deadline breaks off."""

    def __init__(self, access: Access, deadline: _Deadline) -> None:
        self._deadline = deadline
        self._own_ca = access.ca is not None
        self._context = _context(access)
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **more: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **self._tls(), **more)

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        return super().proxy_manager_for(proxy, **self._tls(), **more)

    def get_connection_with_tls_context(self, *args: Any, **more: Any) -> Any:
        pool = super().get_connection_with_tls_context(*args, **more)
        pool.ConnectionCls = _watched(pool.ConnectionCls, self._deadline)
        return pool

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        # It would add the public CAs to the one that is trusted.
        if not self._own_ca:
            super().cert_verify(conn, url, verify, cert)

    def _tls(self) -> dict[str, Any]:
        return {"ssl_context": self._context}


def _watched(kind: Any, deadline: _Deadline) -> Any:
    def connect(self: Any) -> None:
        kind.connect(self)
        deadline.watch(self.sock)

    return type(kind.__name__, (kind,), {"connect": connect})


class _Session(requests.Session):
    """Goes nowhere but to the one address, and reads no more than an answer has."""

    def __init__(self, access: Access, deadline: _Deadline) -> None:
        super().__init__()
        self._adapter = _Adapter(access, deadline)
        self._token = access.token
        # A .netrc would replace the token, a bundle in the environment the CA; proxies are wanted.
        self.trust_env = False
        self.proxies = get_environ_proxies(access.address)

    def get_adapter(self, url: str | bytes) -> HTTPAdapter:  # noqa: ARG002
        return self._adapter

    def get_redirect_target(self, resp: requests.Response) -> None:  # noqa: ARG002
        return None

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        response = super().send(request, **{**options, "stream": True})
        with response.raw as raw:
            body = raw.read(LIMIT_BYTES + 1, decode_content=False)
        _check(response.status_code, body, self._token)
        if len(body) > LIMIT_BYTES:
            raise PrometheusError(f"answers with more than {LIMIT_BYTES} bytes; check its address")
        response.raw = io.BytesIO(body)
        return response


def _check(status: int, body: bytes, token: str | None) -> None:
    if status in _REFUSALS:
        raise PrometheusError(f"refuses the operator ({status}); check the bearer token")
    if status != _OK:
        said = _said(body, token)
        raise PrometheusError(f"answers {status}{said}; check its address, path included, and its log")


def _said(body: bytes, token: str | None) -> str:
    """What Prometheus says is wrong; another program's page says nothing that helps.

    What stands before it may quote the request, whose token is not for those who may look at the pool.
    """
    try:
        said = _Refusal.model_validate_json(body).error
    except ValidationError:
        return ""
    return f" ({one_line((said.replace(token, REDACTED) if token else said)[:_LONGEST_ERROR])})"


def _context(access: Access) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=access.ca)
    except (ssl.SSLError, ValueError):
        raise PrometheusError("can't be asked: what is to be its CA is no certificate; correct it") from None
    if access.certificate is not None:
        _show(access.certificate, context)
    return context


def _show(certificate: str, context: ssl.SSLContext) -> None:
    """Has the context show a certificate. It can be loaded from a file alone; this one is in memory."""
    with os.fdopen(os.memfd_create("certificate"), "w") as file:
        try:
            file.write(certificate)
            file.flush()
            # Without a password, one would be asked for at the terminal where the key wants it.
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password="")
        except (ssl.SSLError, ValueError):
            raise PrometheusError(
                "can't be asked: what is to be the operator's certificate is none, or has another key; "
                "correct it"
            ) from None
