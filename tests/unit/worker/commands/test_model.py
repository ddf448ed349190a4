"""`model fetch` against a hub of our own, and `model convert`."""

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import pytest

from zerolayer_worker.cli import main

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "model.safetensors": b"weights" * 1000,
    "pytorch_model.bin": b"a copy nobody needs",
    "README.md": b"# hello",
}


class Hub(BaseHTTPRequestHandler):
    """The two routes of the Hub that a download uses."""

    files = FILES
    token: str | None = None
    seen: ClassVar[list[str]] = []

    def log_message(self, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        self.seen.append(path)
        if self.token is not None and self.headers.get("Authorization") != f"Bearer {self.token}":
            return self.answer(401, b"{}", {"X-Error-Code": "RepoNotFound"})
        if path.startswith("/api/models/org/tiny"):
            if path.endswith("no-such-revision"):
                return self.answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            return self.answer(200, self.listing(path), {"Content-Type": "application/json"})
        name = path.removeprefix(f"/org/tiny/resolve/{COMMIT}/")
        if name not in self.files:
            return self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        content = self.files[name]
        etag = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        return self.answer(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})

    def listing(self, path: str) -> bytes:
        if "/tree/" in path:
            return json.dumps(
                [
                    {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
                    for name, content in self.files.items()
                ]
            ).encode()
        siblings = [{"rfilename": name} for name in self.files]
        return json.dumps({"id": "org/tiny", "sha": COMMIT, "siblings": siblings}).encode()

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture
def hub() -> Iterator[type[Hub]]:
    handler = type("OneHub", (Hub,), {"seen": [], "files": dict(FILES), "token": None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    handler.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield handler
    server.shutdown()
    server.server_close()
    thread.join()


def fetch(hub: Any, dest: Path, *, repo: str = "org/tiny", revision: str = COMMIT, token: str = "") -> Any:
    """In a process of its own: the library reads its variables when it is imported."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(dest.parent),
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": token,
        "HF_HUB_DISABLE_XET": "1",
    }
    argv = ["model", "fetch", "--repo", repo, "--revision", revision, "--dest", str(dest)]
    code = f"import sys; from zerolayer_worker.cli import main; sys.exit(main({argv!r}))"
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_fetch_brings_what_serving_needs_and_no_more(hub: Any, tmp_path: Path) -> None:
    dest = tmp_path / "model"
    hub.token = "hf_secret"
    result = fetch(hub, dest, token="hf_secret")
    assert result.returncode == 0, result.stderr
    found = {path.name for path in dest.iterdir() if path.is_file()}
    assert found == {"config.json", "tokenizer.json", "model.safetensors"}
    assert (dest / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert "hf_secret" not in result.stderr + result.stdout


def test_fetch_completes_an_earlier_one(hub: Any, tmp_path: Path) -> None:
    dest = tmp_path / "model"
    assert fetch(hub, dest).returncode == 0
    (dest / "model.safetensors").unlink()
    hub.seen.clear()
    assert fetch(hub, dest).returncode == 0
    assert (dest / "model.safetensors").read_bytes() == FILES["model.safetensors"]


@pytest.mark.parametrize(
    ("changes", "files", "named"),
    [
        ({"repo": "org/other"}, FILES, "org/other@"),
        ({"revision": "no-such-revision"}, FILES, "--revision"),
        ({"repo": "not a repo"}, FILES, "not a repo"),
        ({}, {"config.json": b"{}"}, "safetensors"),
    ],
)
def test_fetch_says_what_is_wrong_in_one_line(
    hub: Any, tmp_path: Path, changes: dict[str, str], files: dict[str, bytes], named: str
) -> None:
    hub.files = files
    result = fetch(hub, tmp_path / "model", **changes)
    assert result.returncode == 1
    lines = [line for line in result.stderr.splitlines() if line.startswith("model: ")]
    assert len(lines) == 1
    assert named in lines[0]
    assert "Traceback" not in result.stderr


def test_fetch_says_that_the_hub_does_not_answer(tmp_path: Path) -> None:
    class Nowhere:
        url = "http://127.0.0.1:1"

    result = fetch(Nowhere, tmp_path / "model")
    assert result.returncode == 1
    assert "HF_ENDPOINT" in result.stderr
    assert "Traceback" not in result.stderr


def test_convert_hands_over_to_the_converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zerolayer_worker.models import gguf  # noqa: PLC0415  # imports torch

    calls: list[tuple[Path, Path, str]] = []
    monkeypatch.setattr(gguf, "convert_gguf", lambda *arguments: calls.append(arguments))
    argv = ["model", "convert", "x.gguf", "--out", str(tmp_path), "--dtype", "float32"]
    assert main(argv) == 0
    assert calls == [(Path("x.gguf"), tmp_path, "float32")]


def test_convert_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "convert", str(tmp_path / "missing.gguf"), "--out", str(tmp_path / "out")]) == 1
    assert "missing.gguf" in capsys.readouterr().err
