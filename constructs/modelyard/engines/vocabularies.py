"""Vocabularies that an engine's libraries would download at the start, by architecture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from modelyard.engines.release import Release
from modelyard.reading.table import read_table

FOLDER: Final = "encodings"
"""Folder of vocabularies beside the weights."""


@dataclass(frozen=True)
class EncodingFile:
    """One file. `variable`: the environment variable with the folder that holds it."""

    file: str
    url: str
    sha256: str
    variable: str

    @property
    def path(self) -> str:
        """Where it lies, relative to the weights."""
        return f"{FOLDER}/{self.file}"


def vocabulary_of(release: Release, architecture: str) -> EncodingFile | None:
    """The file that `release` needs beside the weights of an architecture; None for most."""
    row = _table().get(architecture) if release.fetches_vocabularies else None
    return EncodingFile(**row) if row else None


@cache
def _table() -> dict[str, Any]:
    return read_table(files("modelyard.engines").joinpath("data", "vocabularies.yaml"))
