"""A real llama-server with random weights: location, start and requests."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.engine.installed import ROOT
from tests.engine.live_server import Answer, free_port

PYTHON = ROOT / ".venv-llama" / "bin" / "python"
SERVER = ROOT / ".venv-llama" / "bin" / "llama-server"
_STAMP = ROOT / ".venv-llama" / ".installed"
START_AT_MOST = 120  # seconds


def require() -> None:
    """Skip the importing module where the server is not installed, or only half."""
    if not _STAMP.is_file():
        pytest.skip(
            "the real llama-server is not there: python3 .ci/install_llama.py", allow_module_level=True
        )


def write_model(folder: Path, kind: Literal["generate", "embed", "slow"]) -> Path:
    path = folder / f"{kind}.gguf"
    subprocess.run([PYTHON, ROOT / "tests" / "engine" / "tiny_gguf.py", path, kind], check=True)
    return path


@dataclass
class LlamaServer:
    """The process; `before_ready` are the answers of the probes' path until it was 200, each once, in their
    order."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    before_ready: list[str] = field(default_factory=list)

    def ask(self, path: str, body: dict[str, Any] | None = None, key: str | None = None) -> Answer:
        with closing(self.connect(path, body, key)) as connection:
            response = connection.getresponse()
            return Answer(response.status, response.getheader("Content-Type") or "", response.read().decode())

    def connect(
        self, path: str, body: dict[str, Any] | None = None, key: str | None = None
    ) -> HTTPConnection:
        """A connection over which the request has been sent, and nothing read."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        try:
            connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
        except OSError:
            connection.close()
            raise
        return connection

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_AT_MOST
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                answer = str(self.ask("/health").status)
            except OSError as error:
                answer = type(error).__name__
            if answer == "200":
                return
            if answer not in self.before_ready:
                self.before_ready.append(answer)
            time.sleep(0.001)
        pytest.fail(f"not ready, exit code {self.process.poll()}:\n{self.log.read_text()[-4000:]}")


@contextmanager
def running(model: Path, arguments: Sequence[str], log: Path) -> Iterator[LlamaServer]:
    """A server of `model` that is ready; killed at the end, if it still runs. `arguments` are those of a
    container without model, host and port."""
    port = free_port()
    command = [str(SERVER), "--model", str(model), "--host", "127.0.0.1", "--port", str(port), *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=log.parent)
    started = LlamaServer(process, port, log)
    try:
        started.wait_until_ready()
        yield started
    finally:
        process.kill()
        process.wait()
