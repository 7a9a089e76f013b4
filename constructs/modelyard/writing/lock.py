"""One writer at a time in a folder."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modelyard.writing.refusal import NotWritten

PATIENCE_S = 30.0
"""How long a writer waits for another one; a tree of a thousand models is written in a few seconds."""

# Errors of file systems without such locks, some network ones included.
_NO_LOCKS = {errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder`, which must exist. The system releases it when the process ends, for whatever
    reason.

    The folder itself is locked, so that no lock file stays behind.

    Raises:
        NotWritten: another process holds it for longer than `PATIENCE_S`.
        OSError: the folder cannot be opened.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such locks and cannot open folders
        yield
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise NotWritten(
                        f"another modelyard has been writing in {folder} for {PATIENCE_S:.0f} s; "
                        "run this again when it is done"
                    ) from None
                time.sleep(0.05)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                break
        yield
    finally:
        os.close(handle)
