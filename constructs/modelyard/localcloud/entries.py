"""Reads the journal, whose content is not trusted."""

from __future__ import annotations

from pathlib import Path

from modelyard.findings import Finding
from modelyard.localcloud.journal import Entry
from modelyard.reading import RECORD, read_file


class UnreadableJournal(Exception):
    """The journal holds an entry that the server did not write; the text says where."""


def read(path: Path) -> list[Entry]:
    """Every entry, oldest first; empty if there is no journal.

    Raises:
        UnreadableJournal: it holds anything else.
    """
    if not path.exists():
        return []
    text = read_file(path, RECORD)
    if isinstance(text, Finding):
        raise UnreadableJournal(str(text))
    return [_entry(path, number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def _entry(path: Path, number: int, line: str) -> Entry:
    try:
        return Entry.from_line(line)
    except ValueError as problem:
        raise UnreadableJournal(
            f"{path}:{number}: {problem}; `down --discard` throws the embedded AWS away"
        ) from None
