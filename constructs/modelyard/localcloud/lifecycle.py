"""Start, find and stop the server process. One a state folder; everything it writes is below that folder."""

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
"""Folder of the states, one an environment, below the project."""

LOG = "server.log"
MARKER = ".modelyard-localcloud.json"
"""Says that a folder is the state of an embedded AWS, and what in it may be deleted."""

_OURS = (
    *("state", "s3", "tmp", RECORD, f"{RECORD}.new", LOG, FILE_NAME),  # the server's
    *("cdk.out", "cdk.log", "cdk-home", "elsewhere"),  # the CDK CLI's
)
_LOG_TAIL_LINES = 15

# Servers started by this process: kept until they stop, so that they are waited for and leave no zombie.
_children: dict[int, subprocess.Popen[bytes]] = {}


class ServerFailed(Exception):
    """The server did not come up, or is gone; the text ends with what it said last."""


def find_python(project: Path) -> Path:
    """The interpreter that has MiniStack: an environment of its own, because it pins its own botocore."""
    python = project / ".venv-localcloud" / "bin" / "python"
    if not python.exists():
        raise ToolMissing(
            f"no {python}; run `UV_PROJECT_ENVIRONMENT=.venv-localcloud uv sync --only-group localcloud`"
        )
    return python


def start(state: Path, *, python: Path) -> Endpoint:
    """Start the server, detached, and wait until it answers; one that runs already is reused."""
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
            start_new_session=True,  # Ctrl-C in this terminal is not for the server
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
    """The server of this state folder, or None when there is none.

    A process that lives but does not answer is an error, not an absence: starting a second beside it would
    leave the first one half dead.
    """
    state = state.resolve()
    endpoint = _recorded(state)
    if endpoint is None or not _is_ours(endpoint.pid, state):
        return None
    for _ in range(20):  # it may be busy with a deployment
        if _answers(endpoint):
            return endpoint
        time.sleep(0.25)
    raise ServerFailed(
        f"process {endpoint.pid} holds {state} but {endpoint.url} does not answer; "
        f"stop it with `kill {endpoint.pid}`{_tail(state)}"
    )


def stop(state: Path) -> bool:
    """Stop the server if there is one, and remove what it wrote. True when there was something to stop.

    The folder goes with it, unless somebody else has put something there.
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
    """Node for Lambdas written in JavaScript; nothing else of the user's matters to the server."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "LC_ALL") if name in os.environ}
    path = os.pathsep.join([str(find_node().parent), os.environ.get("PATH", os.defpath)])
    return kept | {"PATH": path, "PYTHONUNBUFFERED": "1"}


def _clear(state: Path) -> None:
    """Remove what an embedded AWS has written, and the folder where nothing else is in it."""
    if not state.exists():
        return
    if state.is_dir() and not any(state.iterdir()):
        return
    if not state.is_dir() or not (state / MARKER).is_file():
        raise ServerFailed(
            f"{state} is not the state of an embedded AWS, {MARKER} is missing: name another folder, or delete it yourself"
        )
    for name in (*_OURS, MARKER):  # the marker last: whoever is interrupted can go on
        entry = state / name
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
    with suppress(OSError):  # something of somebody else is in it
        state.rmdir()
        if state.parent.name == HOME:
            state.parent.rmdir()


def _recorded(state: Path) -> Endpoint | None:
    """What the server of this folder wrote of itself; None where there is none.

    Raises:
        ServerFailed: the file holds something else.
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
    """Whether this process is the server of this folder: a pid alone may have been given to another one."""
    return _command(pid).endswith(f"{_script()} --state {state}")


def _command(pid: int) -> str:
    """The command line of a process; empty when there is none, or when it is a zombie."""
    if Path("/proc/self").exists():  # Linux; `ps` is no part of slim images
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
    # No proxy of the user may sit between this machine and itself.
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
