"""A server that tells who answers, at once or line by line; it needs the standard library alone.

Run as `python echo_server.py HOST PORT NAME`. As the first process of a container it takes no notice of
SIGTERM: it answers until its pod's grace period is over, as a worker that drains does.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

LAST_LINE = "end"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    name = ""

    def do_GET(self) -> None:
        """Answers `{"name": …}`, or with `/stream?lines=…&pause=…` so many lines and one that says `end`."""
        where = urlsplit(self.path)
        if where.path != "/stream":
            self._whole(json.dumps({"name": self.name}).encode())
            return
        asked = parse_qs(where.query)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(int(asked["lines"][0])):
            self._chunk(f"{self.name} {number}\n")
            time.sleep(float(asked["pause"][0]))
        self._chunk(f"{LAST_LINE}\n")
        self.wfile.write(b"0\r\n\r\n")

    def _whole(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _chunk(self, text: str) -> None:
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Says nothing."""


def serve(host: str, port: int, name: str) -> ThreadingHTTPServer:
    """Returns a server that listens; its `serve_forever` answers."""
    server = ThreadingHTTPServer((host, port), type("Handler", (_Handler,), {"name": name}))
    server.daemon_threads = True
    return server


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3]).serve_forever()
