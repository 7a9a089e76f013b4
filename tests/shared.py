"""Expensive fixtures are created once per run and shared by all its processes."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], T]) -> T:
    """What `make` returns, given a new folder that stays; other processes of the same run get a copy of it.

    The processes of pytest-xdist wait for each other here, so `make` must not ask for anything under the same
    name.
    """
    base = factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = run / "shared" / name
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "made"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            (folder / "files").mkdir()
            answer = make(folder / "files")
            made.write_bytes(pickle.dumps(answer))
            return answer
    loaded: T = pickle.loads(made.read_bytes())
    return loaded
