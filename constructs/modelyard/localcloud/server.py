"""The server process: MiniStack on a free port of 127.0.0.1, with the plugin in it.

Run as a script, `python -I server.py --state DIR`, by an interpreter that has MiniStack; `-I` excludes the
caller's PYTHONPATH and working directory. It binds the port itself and passes the open socket on, so no other
process can take the port in between; then it writes `server.json` with the port.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import socket
import sys
import types
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"  # never another interface: the emulator has no authentication
RECORD = "server.json"


def _listening_socket() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind((HOST, 0))
    return listener


def _settings(port: int, state: Path) -> dict[str, str]:
    """MiniStack reads its settings from the environment while it is imported."""
    return {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": HOST,
        "MINISTACK_HOST": HOST,
        "STATE_DIR": str(state / "state"),
        "S3_DATA_DIR": str(state / "s3"),
        "TMPDIR": str(state / "tmp"),
        "PERSIST_STATE": "0",
        "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
        "LAMBDA_EXECUTOR": "local",
        "DOCKER_HOST": "unix:///nonexistent",  # the same behaviour with and without Docker on the machine
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",  # they listen on separate ports
        "CLOUDTRAIL_RECORDING": "0",
    }


def _load_plugin() -> Any:
    """Import `modelyard.localcloud.plugin` without importing `modelyard` or adding its site-packages.

    The project's packages must not be importable here, because MiniStack uses packages that it finds.
    """
    here = Path(__file__).resolve().parent
    parent = types.ModuleType("modelyard")
    parent.__path__ = [str(here.parent)]
    sys.modules["modelyard"] = parent
    return importlib.import_module("modelyard.localcloud.plugin")


def main() -> None:
    parser = argparse.ArgumentParser(description="MiniStack with Modelyard's plugin, on 127.0.0.1")
    parser.add_argument("--state", type=Path, required=True, help="folder for everything this process writes")
    state: Path = parser.parse_args().state.resolve()
    for folder in ("state", "s3", "tmp"):
        (state / folder).mkdir(parents=True, exist_ok=True)

    listener = _listening_socket()
    port: int = listener.getsockname()[1]
    for name in [name for name in os.environ if name.startswith(("AWS_", "MINISTACK_", "LAMBDA_"))]:
        del os.environ[name]
    os.environ.update(_settings(port, state))

    plugin = _load_plugin()
    plugin.install(endpoint_url=f"http://{HOST}:{port}", journal_file=state / "journal.jsonl")

    hypercorn = importlib.import_module("hypercorn.config")
    serve = importlib.import_module("hypercorn.asyncio").serve
    app = importlib.import_module("ministack.app").app
    config = hypercorn.Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1

    pending = state / f"{RECORD}.new"
    pending.write_text(json.dumps({"pid": os.getpid(), "port": port}), encoding="utf-8")
    pending.replace(state / RECORD)
    asyncio.run(serve(app, config))


if __name__ == "__main__":
    main()
