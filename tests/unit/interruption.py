"""A child process that is killed, interrupted or out of disk at a chosen moment of writing.

A moment is one file system call of the process below a folder: Python's audit events name them all, so
nothing depends on the speed of the machine.
"""

from __future__ import annotations

import errno
import os
import pickle
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from modelyard.writing import NotWritten

How = Literal["killed", "interrupted", "full"]
HOWS: tuple[How, ...] = ("killed", "interrupted", "full")

_EVENTS = {"open", "os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir", "os.chmod", "ctypes.dlsym"}
_FILLING = {"os.mkdir", "os.link"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def run_apart(action: Callable[[], object]) -> int:
    """Run `action` in a fork; 0 where it returned, 1 where it raised, the negative number of a signal that
    ended it."""
    with warnings.catch_warnings():
        # From Python 3.12 on, of other threads: those of pytest-xdist, which the child does not use.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        action()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0) if not isinstance(end.code, str) else 1
    except KeyboardInterrupt:
        code = 130
    except NotWritten:
        code = 1
    except Exception:  # noqa: BLE001 - whatever it is, the fork has to end
        traceback.print_exc()
        code = 70
    finally:
        os._exit(code)


def moments(action: Callable[[], object], folder: Path) -> int:
    """How many moments `action` has below `folder`. It is run in a fork, and so leaves its traces there."""
    read, write = os.pipe()
    count = [0]

    def counted() -> None:
        sys.addaudithook(lambda event, arguments: _count(event, arguments, folder, count))
        try:
            action()
        finally:
            os.write(write, pickle.dumps(count[0]))

    assert run_apart(counted) == 0
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        found: int = pickle.loads(answer.read())
    return found


def stopped(action: Callable[[], object], folder: Path, *, how: How, at: int) -> int:
    """Run `action` in a fork that meets its end, or a full disk, at moment `at` below `folder`."""

    def ended() -> None:
        count = [0]

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if not _count(event, arguments, folder, count) or count[0] < at:
                return
            if how == "full":
                if event in _FILLING or (event == "open" and int(arguments[2] or 0) & _WRITING):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            elif count[0] == at:
                if how == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise KeyboardInterrupt

        sys.addaudithook(hook)
        action()

    return run_apart(ended)


def with_files_of(size: int, action: Callable[[], object]) -> int:
    """Run `action` in a fork that can write no file of more than `size` bytes: the write itself fails."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        action()

    return run_apart(limited)


def _count(event: str, arguments: tuple[Any, ...], folder: Path, count: list[int]) -> bool:
    if event not in _EVENTS:
        return False
    if event != "ctypes.dlsym":  # the exchange of two folders is asked of the C library
        paths = [os.fsdecode(each) for each in arguments if isinstance(each, str | bytes | os.PathLike)]
        if not any(path.startswith(str(folder)) for path in paths):
            return False
    count[0] += 1
    return True
