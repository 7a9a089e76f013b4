"""Reads user files: regular files in UTF-8, with a size limit per kind."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from modelyard.findings import Finding, Location


@dataclass(frozen=True)
class FileKind:
    """A kind of file and its size limit in bytes."""

    name: str
    most_bytes: int


# The limits are documented in the page of YAML002.
SPEC = FileKind("model, environment or pipeline file", 256 << 10)
"""An environment with 300 overrides has 60 KiB. The YAML reader takes a second for 2 MiB, hence the limit."""
CONFIG = FileKind("config.json", 4 << 20)
"""The largest published one, with a list of quantized layers, has 2 MiB."""
CHECKPOINT = FileKind("record of a checkpoint", 8 << 20)
"""A record is a config.json and a page of tensors; one of a mixture of quantizations has 1 MiB."""
PRICES = FileKind("file of prices", 4 << 20)
"""A region has 150 relevant types; all types in all zones would take 1 MiB."""
DEFINITIONS = FileKind("file of CustomResourceDefinitions", 32 << 20)
"""`kubectl get crds -o yaml` prints 10 MiB on a cluster with many operators."""
PAGE = FileKind("page of metrics", 4 << 20)
"""An engine's page has a few hundred KiB."""
RECORD = FileKind("record", 64 << 20)
"""Manifests, templates and journals written by tools."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
# Without O_NONBLOCK, opening a pipe blocks until there is a writer: a regular file can be replaced between
# stat and open.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_MARKS = ((b"\xff\xfe", "UTF-16 or UTF-32"), (b"\xfe\xff", "UTF-16"), (b"\0\0\xfe\xff", "UTF-32"))


def read_file(path: Path, kind: FileKind, *, shown_as: str | None = None) -> str | Finding:
    """The text of `path` without a byte order mark, or the finding that says why there is none.

    Symlinks to regular files are followed. Anything else is never opened, and nothing beyond the limit is
    read.
    """
    file = shown_as or str(path)
    try:
        content = _content(path, kind.most_bytes)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return _unreadable(file, reason, "check the path and its permissions")
    if isinstance(content, int):
        what = next((name for is_one, name in _KINDS if is_one(content)), "not a regular file")
        return _unreadable(file, f"it is {what}", "name a regular file")
    if len(content) > kind.most_bytes:
        return Finding(
            "YAML002",
            f"the file has more than {size(kind.most_bytes)}, the most that a {kind.name} can have",
            "take out what does not belong there, or divide it",
            Location(file),
        )
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _unreadable(file, f"it is text in {encoding}", "save it as UTF-8")
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        place = Location(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        reason = f"byte 0x{content[error.start]:02x} is no UTF-8 text"
        return _unreadable(file, reason, "save the file as UTF-8", place)


def _content(path: Path, most: int) -> bytes | int:
    """Up to `most` + 1 bytes, or the mode if it is not a regular file."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        return mode
    with open(os.open(path, os.O_RDONLY | _AT_ONCE), "rb") as opened:
        mode = os.fstat(opened.fileno()).st_mode
        # st_size is no limit: files in /proc report 0, and others grow.
        return opened.read(most + 1) if stat.S_ISREG(mode) else mode


def size(amount: int) -> str:
    """`amount` bytes, human-readable: limits are whole KiB or MiB."""
    return f"{amount >> 20} MiB" if amount >= 1 << 20 else f"{amount >> 10} KiB"


def _unreadable(file: str, reason: str, fix: str, place: Location | None = None) -> Finding:
    return Finding("YAML001", f"cannot read the file: {reason}", fix, place or Location(file))
