"""A place with the files of one checkpoint, whose contents are read in limited pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from modelyard.failure import Failure
from modelyard.reading import FileKind

INDEX = FileKind("index of safetensors files", 64 << 20)
"""The largest published one, of 200,000 tensors, has 20 MiB."""
MOST_FILES = 50_000


class NotRead(Failure):
    """A checkpoint's facts cannot be had; the text says why and what to do."""


@dataclass(frozen=True)
class Facts:
    """What a place says of a checkpoint beside its files."""

    revision: str | None = None
    ref: str | None = None
    license: str | None = None
    gated: bool = False
    pipeline_tag: str | None = None
    base_model: tuple[str, ...] = ()


class Source(Protocol):
    """The files of one checkpoint. Every method raises NotRead where the place does not answer."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def facts(self) -> Facts: ...

    @property
    def files(self) -> Mapping[str, int]:
        """Sizes of the files in bytes, by name."""

    def read(self, file: str, start: int, length: int) -> bytes:
        """`length` bytes of `file` from `start` on; fewer where it ends."""


def whole(source: Source, file: str, kind: FileKind) -> bytes:
    """The content of a small file.

    Raises:
        NotRead: it has more bytes than a file of its kind.
    """
    found = source.read(file, 0, kind.most_bytes + 1)
    if len(found) > kind.most_bytes:
        raise NotRead(
            f"{file} of {source.name} has more than {kind.most_bytes >> 20} MiB, the most that a {kind.name} can have"
        )
    return found
