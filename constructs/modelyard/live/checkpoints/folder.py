"""A checkpoint in a folder of this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from modelyard.live.checkpoints.source import MOST_FILES, Facts, NotRead


class Folder:
    """The regular files directly in `path`; symlinks to files are followed, as in the Hub's cache."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.facts = Facts()

    @cached_property
    def files(self) -> Mapping[str, int]:
        try:
            entries = [(entry.name, entry.stat()) for entry in os.scandir(self.path)]
        except OSError as error:
            raise NotRead(f"{self.path} cannot be read: {error.strerror or error}") from None
        if len(entries) > MOST_FILES:
            raise NotRead(f"{self.path} has {len(entries):,} files; {MOST_FILES:,} are the most")
        return {name: found.st_size for name, found in sorted(entries) if stat.S_ISREG(found.st_mode)}

    def read(self, file: str, start: int, length: int) -> bytes:
        if file not in self.files:
            raise NotRead(f"{self.path} has no {file}")
        try:
            with (self.path / file).open("rb") as opened:
                opened.seek(start)
                return opened.read(length)
        except OSError as error:
            raise NotRead(f"{self.path / file} cannot be read: {error.strerror or error}") from None
