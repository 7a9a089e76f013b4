"""The list of Modelyard's files in a rendered tree, with hashes, stored in the tree."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from modelyard.writing.lock import locked
from modelyard.writing.refusal import NotWritten

MARKER = ".modelyard-tree.json"
"""File name of the list, at the root of the tree. It is delivered with the tree."""

_ABOUT = (
    "Written by modelyard. It replaces and deletes the files named here, as long as they are as it wrote them, and touches "
    "no others."
)
_MOST_BYTES = 256 << 20  # a thousand models have one MiB
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Ownership:
    """Path below the root to the hexadecimal SHA-256 of the content that Modelyard wrote."""

    files: Mapping[Path, str]

    @classmethod
    def of(cls, contents: Mapping[Path, bytes]) -> Ownership:
        return cls(MappingProxyType({path: digest(content) for path, content in contents.items()}))

    def to_json(self) -> bytes:
        """Deterministic JSON, one line per file."""
        files = {path.as_posix(): digest for path, digest in sorted(self.files.items())}
        return (json.dumps({"about": _ABOUT, "version": 1, "files": files}, indent=1) + "\n").encode()

    @classmethod
    def from_json(cls, text: bytes) -> Ownership:
        """Parse the output of `to_json`.

        Raises:
            ValueError: invalid, or it names a file outside the tree.
        """
        try:
            document = json.loads(text)
        except (UnicodeDecodeError, RecursionError) as error:
            raise ValueError(str(error)) from error
        files = document.get("files") if isinstance(document, dict) else None
        if not isinstance(files, dict) or document.get("version") != 1:
            raise ValueError("it is not a list of files of version 1")
        for name, value in files.items():
            if not _inside(name) or not isinstance(value, str) or not _SHA256.fullmatch(value):
                raise ValueError(f"{name!r} is not a file of this tree with a SHA-256")
        return cls(MappingProxyType({Path(name): value for name, value in files.items()}))


NOTHING = Ownership(MappingProxyType({}))


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_ownership(root: Path) -> Ownership | None:
    """The list of the tree at `root`; None if it has none.

    Raises:
        NotWritten: the list cannot be read, so it is unknown which files may be replaced.
    """
    marker = root / MARKER
    if not os.path.lexists(marker):
        return None
    try:
        if not marker.is_file() or marker.stat().st_size > _MOST_BYTES:
            raise ValueError("it is no file of that kind")
        return Ownership.from_json(marker.read_bytes())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NotWritten(
            f"nothing was written: {root / MARKER} cannot be read: {reason}; it says what is ours: restore it, or move your own "
            f"files out of {root} and delete the folder"
        ) from None


def tree_files(root: Path) -> dict[str, bytes]:
    """The files of the tree at `root` for delivery, list included, by path below it.

    Files of others in the tree are left out. A folder without a list is taken whole.
    """
    if not root.is_dir():
        return {}
    with locked(root.parent):  # excludes a writer that swaps the tree
        owned = read_ownership(root)
        paths = (
            [path for path in root.rglob("*") if path.is_file()]
            if owned is None
            else [path for name in (*owned.files, Path(MARKER)) if (path := root / name).is_file()]
        )
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(paths)}
