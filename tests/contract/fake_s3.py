"""A local S3 with PutObject only: records the objects, or refuses."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.contract.fake_server import answering


class FakeS3(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refuses = refuses
        self.asked: list[str] = []
        self.objects: dict[str, Any] = {}

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables with which boto3 comes here."""
        return {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self.server_address[1]}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


def storing(**options: Any) -> AbstractContextManager[FakeS3]:
    return answering(FakeS3(**options))


class _Handler(BaseHTTPRequestHandler):
    server: FakeS3
    protocol_version = "HTTP/1.1"  # boto3 asks whether it may go on before it sends a body

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(self.path)
        answer = b""
        if self.server.refuses:
            answer = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        else:
            self.server.objects[self.path.removeprefix("/")] = json.loads(body)
        self.send_response(403 if self.server.refuses else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
