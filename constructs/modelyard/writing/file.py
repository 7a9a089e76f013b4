"""One file: readers see the former content or the new one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from modelyard.writing.lock import locked
from modelyard.writing.refusal import DRAFT, whole_or_not


def write_file(path: Path, content: str | bytes) -> None:
    """Replace the content of `path`, whose folder is made where it is missing. A link stays a link.

    The content is written beside the file, forced to disk and renamed: neither a full disk nor a kill leaves
    a half.

    Raises:
        NotWritten: it cannot be written; the former content stays.
    """
    data = content.encode() if isinstance(content, str) else content
    with whole_or_not(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()
        if target.exists() and not target.is_file():
            raise OSError(None, "it is not a regular file")
        draft = target.with_name(f".{target.name}{DRAFT}")
        # Under the lock there is no other writer, so a draft that is there was left behind by one that was
        # killed.
        with locked(target.parent):
            try:
                draft.unlink(missing_ok=True)
                with draft.open("xb") as file:  # never through a link that somebody has put there
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
