"""Atomic write of a tree of files: readers see the old tree or the new, and files of others stay.

The new tree is built beside the old one and swapped in atomically. Unchanged files are hard-linked, not
copied.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from modelyard.writing.aside import Aside
from modelyard.writing.lock import locked
from modelyard.writing.ownership import MARKER, Ownership, digest, read_ownership
from modelyard.writing.refusal import NotWritten, whole_or_not

_SHOWN = 10


@dataclass(frozen=True)
class Rendering:
    """The files of a tree and the changes to it, as paths relative to its root.

    `foreign`: files and folders of others, left alone.
    """

    files: tuple[Path, ...]
    changed: tuple[Path, ...]
    removed: tuple[Path, ...]
    foreign: tuple[Path, ...] = ()


@dataclass(frozen=True)
class _Former:
    """The existing tree, compared with the new one."""

    unchanged: frozenset[Path]
    removed: tuple[Path, ...]
    foreign: tuple[Path, ...]
    conflicts: Mapping[Path, str]
    """Files whose content would be lost."""
    obstacles: Mapping[Path, str]
    """Files that cannot be replaced at all."""
    listed: bool
    """Whether the tree already has the new list."""


def write_tree_files(root: Path, content: Mapping[Path, str], *, overwrite: bool = False) -> Rendering:
    """Write `content`, texts by path, as the tree at `root`.

    Files of an earlier call that are not in `content` are removed; files of others are left alone. Files
    edited since, and files of others at our paths, are replaced only with `overwrite`.

    Raises:
        NotWritten: content would be lost, or cannot be written; the old tree stays.
    """
    contents = {path: text.encode() for path, text in content.items()}
    with whole_or_not(root), _parents_of(root):
        place = root.resolve()
        if place.is_mount():
            raise NotWritten(
                f"nothing was written: {root} is a mount point, and cannot change in one step; mount the folder above it, or "
                "write to a folder in it"
            )
        with locked(place.parent):
            aside = Aside(place)
            aside.clean_up()
            former = _look(place, contents)
            _refuse(root, former, overwrite=overwrite)
            changed = tuple(path for path in contents if path not in former.unchanged)
            if changed or former.removed or not former.listed:
                with aside.building() as stage:
                    _build(stage, place, contents, former)
                aside.swap(replaced=frozenset(former.conflicts))
    return Rendering(tuple(contents), changed, former.removed, former.foreign)


@contextmanager
def _parents_of(root: Path) -> Iterator[None]:
    """Create the folders above `root`, and remove them again on failure."""
    missing = [folder for folder in root.absolute().parents if not folder.exists()]
    if any(folder.exists() and not folder.is_dir() for folder in root.absolute().parents):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(root.parent))
    root.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for folder in missing:
                folder.rmdir()
        raise


def _look(root: Path, contents: Mapping[Path, bytes]) -> _Former:
    owned = read_ownership(root) if root.is_dir() else None
    files = owned.files if owned else {}
    folders = {parent for path in (*files, *contents) for parent in path.parents}
    unchanged, removed, foreign = set(), [], []
    conflicts, obstacles = {}, {}
    for path, entry in _entries(root, folders):
        regular = entry.is_file(follow_symlinks=False)
        if path in folders or (path in contents and not regular):
            obstacles[path] = (
                "is a folder" if entry.is_dir() and not entry.is_symlink() else "is not a regular file"
            )
        elif path not in contents and path not in files:
            foreign.append(path)
        else:
            text = Path(entry.path).read_bytes() if regular else b""
            if contents.get(path) == text:
                unchanged.add(path)
                continue
            if path not in files:
                conflicts[path] = "was not written by modelyard"
            elif digest(text) != files[path]:
                conflicts[path] = "was edited"
            if path not in contents:
                removed.append(path)
    return _Former(
        unchanged=frozenset(unchanged),
        removed=tuple(sorted(removed)),
        foreign=tuple(sorted(foreign)),
        conflicts=conflicts,
        obstacles=obstacles,
        listed=owned == Ownership.of(contents),
    )


def _entries(root: Path, folders: set[Path], below: Path = Path()) -> Iterator[tuple[Path, os.DirEntry[str]]]:
    """The entries in `folders`, recursively. Other folders are yielded, but not walked."""
    if not (root / below).exists():
        return
    with os.scandir(root / below) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = below / entry.name
        if path == Path(MARKER):
            continue
        if path in folders and entry.is_dir(follow_symlinks=False):
            yield from _entries(root, folders, path)
        else:
            yield path, entry


def _refuse(root: Path, former: _Former, *, overwrite: bool) -> None:
    stops = {**former.obstacles, **({} if overwrite else former.conflicts)}
    if not stops:
        return
    lines = [f"    {path} {reason}" for path, reason in sorted(stops.items())]
    if len(lines) > _SHOWN:
        lines[_SHOWN:] = [f"    and {len(lines) - _SHOWN} more"]
    way_out = "move them away" if former.obstacles else "move them away, or let --overwrite replace them"
    raise NotWritten(
        "\n".join([f"nothing was written: {root} holds what would be lost", *lines, f"    {way_out}"])
    )


def _build(stage: Path, root: Path, contents: Mapping[Path, bytes], former: _Former) -> None:
    """Build the new tree in the empty folder `stage`."""
    paths = [*contents, *former.foreign]
    for folder in sorted({parent for path in paths for parent in path.parents}):
        (stage / folder).mkdir(exist_ok=True)
        if (root / folder).is_dir():
            shutil.copymode(root / folder, stage / folder)
    for path, text in contents.items():
        if path in former.unchanged:
            _link(os.path.join(root, path), os.path.join(stage, path))
        else:
            (stage / path).write_bytes(text)
    for path in former.foreign:
        _carry_over(root / path, stage / path)
    (stage / MARKER).write_bytes(Ownership.of(contents).to_json())


def _carry_over(there: Path, here: Path) -> None:
    if there.is_symlink() or not there.is_dir():
        _link(str(there), str(here))
        return
    if there.is_mount():
        raise OSError(None, "a file system is mounted there", str(there))
    here.mkdir()
    for entry in there.iterdir():
        _carry_over(entry, here / entry.name)
    shutil.copystat(there, here)


def _link(there: str, here: str) -> None:
    """Hard-link the file, or copy it if the file system has no hard links."""
    try:
        os.link(there, here, follow_symlinks=False)
    except OSError:
        shutil.copy2(there, here, follow_symlinks=False)
