"""A local Hugging Face Hub whose answers a test defines."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LocalHub(BaseHTTPRequestHandler):
    """Answers GET and HEAD alike."""

    def answer(self, path: str) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body and headers for `path`, which has no query."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        self._send(with_body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        pass

    def _send(self, *, with_body: bool) -> None:
        status, body, headers = self.answer(self.path.partition("?")[0])
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


@contextmanager
def serving(handler: type[LocalHub]) -> Iterator[str]:
    """The address of a hub that answers with `handler`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
