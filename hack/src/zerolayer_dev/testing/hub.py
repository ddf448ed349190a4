"""As much of the Hugging Face hub as downloading one repository needs, served from a folder."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True, slots=True)
class Repository:
    """What is served: `owner/name`, the folder of its files, and the token that clients need."""

    name: str
    folder: Path
    token: str


@contextmanager
def serve(repository: Repository, host: str) -> Iterator[str]:
    """Serves the repository on a free port of `host`, and yields the hub's URL."""
    handler = type("Handler", (_Handler,), {"repository": repository})
    with ThreadingHTTPServer((host, 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{host}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    repository: ClassVar[Repository]

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        name, path = self.repository.name, self.path.partition("?")[0]
        if self.headers.get("authorization") != f"Bearer {self.repository.token}":
            self._send(401, b"", with_body=with_body)
        elif path.startswith(f"/api/models/{name}/revision/"):
            self._send(200, self._revision(), with_body=with_body)
        elif path.startswith(f"/api/models/{name}/tree/{COMMIT}"):
            self._send(200, self._tree(), with_body=with_body)
        elif path.startswith(f"/{name}/resolve/{COMMIT}/"):
            self._send_file(self.repository.folder / path.rpartition("/")[2], with_body=with_body)
        else:
            self._send(404, b"", with_body=with_body)

    def _revision(self) -> bytes:
        files = [{"rfilename": path.name} for path in self._files()]
        return json.dumps({"id": self.repository.name, "sha": COMMIT, "siblings": files}).encode()

    def _tree(self) -> bytes:
        entries = [
            {"type": "file", "path": path.name, "size": path.stat().st_size, "oid": COMMIT}
            for path in self._files()
        ]
        return json.dumps(entries).encode()

    def _files(self) -> list[Path]:
        return sorted(self.repository.folder.iterdir())

    def _send_file(self, path: Path, *, with_body: bool) -> None:
        if not path.is_file():
            self._send(404, b"", with_body=with_body)
            return
        content = path.read_bytes()
        etag = hashlib.sha256(content).hexdigest()
        self._send(200, content, with_body=with_body, etag=f'"{etag}"')

    def _send(self, status: int, body: bytes, *, with_body: bool, etag: str = "") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        if etag:
            self.send_header("etag", etag)
            self.send_header("x-repo-commit", COMMIT)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class calls it so
        """Says nothing: a test's output is its own."""
