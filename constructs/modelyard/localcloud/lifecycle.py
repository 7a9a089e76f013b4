"""Start, find and stop the server process. One server per state folder, and all its files are in that
folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from modelyard.localcloud.deployment import ToolMissing, find_node
from modelyard.localcloud.endpoint import Endpoint
from modelyard.localcloud.journal import FILE_NAME
from modelyard.localcloud.server import HOST, RECORD
from modelyard.reading import RECORD as RECORDS
from modelyard.reading import parse_json, read_file
from modelyard.writing import write_file

START_LIMIT_S = 180.0  # two seconds on an idle machine
STOP_LIMIT_S = 10.0
HOME = ".modelyard"
"""Folder of the states, one per environment, below the project."""

LOG = "server.log"
MARKER = ".modelyard-localcloud.json"
"""Marks a folder as the state of an embedded AWS, with files that may be deleted."""

_OURS = (
    *("state", "s3", "tmp", RECORD, f"{RECORD}.new", LOG, FILE_NAME),  # the server's
    *("cdk.out", "cdk.log", "cdk-home", "elsewhere"),  # the CDK CLI's
)
_LOG_TAIL_LINES = 15

# Servers started by this process: kept until they stop, to reap them and leave no zombie.
_children: dict[int, subprocess.Popen[bytes]] = {}


class ServerFailed(Exception):
    """The server did not start, or is gone; the text ends with its last output."""


def find_python(project: Path) -> Path:
    """The interpreter with MiniStack: a separate virtual environment, because MiniStack pins its own
    botocore."""
    python = project / ".venv-localcloud" / "bin" / "python"
    if not python.exists():
        raise ToolMissing(
            f"no {python}; run `UV_PROJECT_ENVIRONMENT=.venv-localcloud uv sync --only-group localcloud`"
        )
    return python


def start(state: Path, *, python: Path) -> Endpoint:
    """Start the server, detached, and wait until it answers; a running server is reused."""
    state = state.resolve()
    already = running(state)
    if already is not None:
        return already
    _clear(state)
    state.mkdir(parents=True, exist_ok=True)
    what = {"about": "state of an embedded AWS; modelyard deletes what is named here", "entries": _OURS}
    write_file(state / MARKER, json.dumps(what, indent=1) + "\n")
    with (state / LOG).open("wb") as log:
        process = subprocess.Popen(
            [str(python), "-I", str(_script()), "--state", str(state)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in this terminal must not reach the server
            env=_environment(),
        )
    deadline = time.monotonic() + START_LIMIT_S
    try:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise ServerFailed(f"the embedded AWS stopped with status {process.returncode}{_tail(state)}")
            endpoint = _recorded(state)
            if endpoint is not None and _answers(endpoint):
                _children[process.pid] = process
                return endpoint
            time.sleep(0.1)
    except BaseException:
        process.kill()
        process.wait()
        raise
    process.kill()
    process.wait()
    raise ServerFailed(f"the embedded AWS did not answer within {START_LIMIT_S:.0f} s{_tail(state)}")


def running(state: Path) -> Endpoint | None:
    """The server of this state folder, or None.

    A live process that does not answer is an error, not absence: a second server next to it would leave the
    first half dead.
    """
    state = state.resolve()
    endpoint = _recorded(state)
    if endpoint is None or not _is_ours(endpoint.pid, state):
        return None
    for _ in range(20):  # it may be busy with a deploy
        if _answers(endpoint):
            return endpoint
        time.sleep(0.25)
    raise ServerFailed(
        f"process {endpoint.pid} holds {state} but {endpoint.url} does not answer; "
        f"stop it with `kill {endpoint.pid}`{_tail(state)}"
    )


def stop(state: Path) -> bool:
    """Stop the server if there is one, and delete its files. Returns whether there was anything to stop.

    The folder is deleted too, unless it holds other files.
    """
    state = state.resolve()
    endpoint = _recorded(state)
    stopped = endpoint is not None and _is_ours(endpoint.pid, state)
    if endpoint is not None and stopped:
        os.kill(endpoint.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_LIMIT_S
        while _is_ours(endpoint.pid, state) and time.monotonic() < deadline:
            time.sleep(0.05)
        if _is_ours(endpoint.pid, state):
            os.kill(endpoint.pid, signal.SIGKILL)
        if endpoint.pid in _children:
            _children.pop(endpoint.pid).wait()
    _clear(state)
    return stopped


def _script() -> Path:
    return Path(__file__).with_name("server.py")


def _environment() -> dict[str, str]:
    """Node for JavaScript Lambdas; the server needs nothing else from the user's environment."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "LC_ALL") if name in os.environ}
    path = os.pathsep.join([str(find_node().parent), os.environ.get("PATH", os.defpath)])
    return kept | {"PATH": path, "PYTHONUNBUFFERED": "1"}


def _clear(state: Path) -> None:
    """Delete the files of an embedded AWS, and the folder if it is then empty."""
    if not state.exists():
        return
    if state.is_dir() and not any(state.iterdir()):
        return
    if not state.is_dir() or not (state / MARKER).is_file():
        raise ServerFailed(
            f"{state} is not the state of an embedded AWS, {MARKER} is missing: name another folder, or delete it yourself"
        )
    for name in (*_OURS, MARKER):  # the marker last, so that an interrupted run can be repeated
        entry = state / name
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
    with suppress(OSError):  # it holds other files
        state.rmdir()
        if state.parent.name == HOME:
            state.parent.rmdir()


def _recorded(state: Path) -> Endpoint | None:
    """The endpoint that the server of this folder recorded, or None.

    Raises:
        ServerFailed: the file holds anything else.
    """
    path = state / RECORD
    if not path.exists():
        return None
    text = read_file(path, RECORDS)
    try:
        record = parse_json(text if isinstance(text, str) else "{}")
        port, pid = record["port"], record["pid"]
        if isinstance(port, int) and isinstance(pid, int) and 0 < port < 65536 and 0 < pid < 1 << 31:
            return Endpoint(url=f"http://{HOST}:{port}", pid=pid)
    except (LookupError, TypeError, ValueError):
        pass
    raise ServerFailed(f"{path} is not what the embedded AWS writes; remove it, and the server if one runs")


def _is_ours(pid: int, state: Path) -> bool:
    """Whether this process is the server of this folder: the pid may have been reused."""
    return _command(pid).endswith(f"{_script()} --state {state}")


def _command(pid: int) -> str:
    """The command line of a process; empty if there is none, or for a zombie."""
    if Path("/proc/self").exists():  # Linux; slim images have no `ps`
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return ""
        return line.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    asked = subprocess.run(
        ["ps", "-o", "command=", "-ww", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip()


def _answers(endpoint: Endpoint) -> bool:
    # No proxy for requests to localhost.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{endpoint.url}/_ministack/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _tail(state: Path) -> str:
    log = state / LOG
    if not log.exists():
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL_LINES:]
    return f"; the end of {log}:\n" + "\n".join(lines) if lines else ""
