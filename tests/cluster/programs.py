"""What .ci/install_control_plane.py built, and running it: a process each, ended by its id."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
BUILT = ROOT / ".tools" / "control-plane.json"

_DYING_WITH_ITS_PARENT = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
os.execv(sys.argv[1], sys.argv[1:])
"""
_TO_END = 20
"""Seconds that a program has to end by itself."""

T = TypeVar("T")


class Stopped(Exception):
    """A program ended that was to run, or what was waited for did not come."""


def program(name: str) -> Path:
    """The built program.

    Raises:
        FileNotFoundError: nothing is built; `make e2e` does so.
    """
    return Path(_built()["programs"][name])


def definitions() -> list[Path]:
    """Folders of the CRDs that came with the programs."""
    return [Path(each) for each in _built()["crds"]]


def _built() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(BUILT.read_text(encoding="utf-8"))
    return answer


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def until(
    ask: Callable[[], T | None],
    what: str,
    *,
    seconds: float = 300,
    lacking: Callable[[], Iterable[object]] = tuple,
) -> T:
    """The first answer of `ask` that is neither None nor False nor empty.

    Raises:
        Stopped: none came within `seconds`; `lacking` says what the text then names.
    """
    end = time.monotonic() + seconds
    pause = 0.05  # longer each time: who asks takes time from those that it waits for
    while True:
        if answer := ask():
            return answer
        if time.monotonic() > end:
            left = ", ".join(map(str, lacking()))
            raise Stopped(f"{what}: not within {seconds:.0f} s{left and f'; {left}'}")
        time.sleep(pause)
        pause = min(pause * 1.2, 0.5)


class Running:
    """A started program; its output is in `log`."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], log: Path) -> None:
        self._start = start
        self._process = start()
        self.log = log

    @property
    def id(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.poll()

    def ask_to_end(self) -> None:
        """SIGTERM; nobody waits."""
        self._process.terminate()

    def check(self) -> None:
        """Raises Stopped, with the end of its log, when it has ended."""
        if self._process.poll() is not None:
            text = self.log.read_text(encoding="utf-8", errors="replace")
            raise Stopped(f"{self.log.stem} ended with {self._process.returncode}:\n{text[-3000:]}")

    def restart(self) -> None:
        """Start it again after `end`, with the same arguments."""
        self._process = self._start()

    def end(self) -> None:
        """End it, and wait until it has ended; what it has started goes too."""
        self._process.terminate()
        try:
            self._process.wait(_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


@contextmanager
def running(
    name: str,
    arguments: Sequence[str],
    folder: Path,
    *,
    variables: dict[str, str] | None = None,
    executable: Path | None = None,
) -> Iterator[Running]:
    """The built program `name`, or another executable, until the block ends, however it ends."""
    log = folder / f"{name}.log"
    log.unlink(missing_ok=True)

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-IS",
                    "-c",
                    _DYING_WITH_ITS_PARENT,
                    executable or program(name),
                    *arguments,
                ],
                cwd=folder,
                # Nothing of the shell's: no kubeconfig, no proxy, no credentials of AWS.
                env={"HOME": str(folder), "PATH": "/usr/bin:/bin", **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C ends pytest, which ends this one; a pytest that is killed takes it along.
                start_new_session=True,
            )

    started = Running(start, log)
    try:
        yield started
    finally:
        started.end()
