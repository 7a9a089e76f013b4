"""Atomic write of one file: readers see the old content or the new."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from modelyard.writing.lock import locked
from modelyard.writing.refusal import DRAFT, whole_or_not


def write_file(path: Path, content: str | bytes) -> None:
    """Replace the content of `path`, creating its folder if missing. A symlink stays a symlink.

    The content is written to a temporary file, fsynced and renamed, so neither a full disk nor a kill leaves
    a partial file.

    Raises:
        NotWritten: it cannot be written; the old content stays.
    """
    data = content.encode() if isinstance(content, str) else content
    with whole_or_not(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()
        if target.exists() and not target.is_file():
            raise OSError(None, "it is not a regular file")
        draft = target.with_name(f".{target.name}{DRAFT}")
        # The lock excludes other writers, so an existing draft was left behind by a killed one.
        with locked(target.parent):
            try:
                draft.unlink(missing_ok=True)
                with draft.open("xb") as file:  # never follows an existing symlink
                    if target.exists():
                        draft.chmod(target.stat().st_mode & 0o7777)
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(target)
            except BaseException:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)
                raise
