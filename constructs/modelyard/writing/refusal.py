"""Errors of writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modelyard.failure import Failure

DRAFT = ".modelyard-draft"
"""Suffix of unfinished files."""


class NotWritten(Failure):
    """Nothing was written and existing files are unchanged; the text says why and what to do."""


@contextmanager
def whole_or_not(target: Path) -> Iterator[None]:
    """Turn operating system errors into one sentence about `target`.

    Raises:
        NotWritten: a full disk, a missing permission, a file where a folder is needed.
    """
    try:
        yield
    except OSError as error:
        where = str(error.filename or target)
        place = "" if where == str(target) else f" ({where})"
        raise NotWritten(
            f"cannot write {target}: {error.strerror or error}{place}; what was there is as it was"
        ) from error
