"""Atomic exchange of two folders, if the system supports it."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_AT_FDCWD = {"linux": -100, "darwin": -2}.get(sys.platform, 0)
_RENAME_EXCHANGE = 2
"""From linux/fs.h; RENAME_SWAP in macOS' sys/stdio.h has the same value."""

# File systems or kernels without support: NFS, and Linux before 3.15.
_NOT_HERE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}


def exchange(one: Path, other: Path) -> bool:
    """Exchange `one` and `other` atomically; False if this system or file system cannot.

    Raises:
        OSError: they cannot be renamed.
    """
    libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    call = getattr(libc, "renameat2", None) or getattr(libc, "renameatx_np", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    error = ctypes.get_errno()
    if error in _NOT_HERE:
        return False
    raise OSError(error, os.strerror(error), str(other))
