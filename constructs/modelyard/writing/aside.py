"""The scratch folder beside a tree, where the new tree is built and the old one is deleted.

However a process ends, the flag tells the next one the state of the folder. The flag is empty while a tree is
being built, and holds the hash of the finished tree's list. If the list in the folder has that hash, the tree
was never swapped in.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from modelyard.writing.exchange import exchange
from modelyard.writing.ownership import MARKER, digest, read_ownership
from modelyard.writing.refusal import DRAFT, NotWritten


@dataclass(frozen=True)
class Aside:
    """The scratch folder of the tree at `root`; callers hold the lock of `root`'s parent."""

    root: Path

    @property
    def _folder(self) -> Path:
        return self.root.with_name(f".{self.root.name}{DRAFT}")

    @property
    def _flag(self) -> Path:
        return self._folder / "unfinished"

    @property
    def _tree(self) -> Path:
        return self._folder / "tree"

    @property
    def _former(self) -> Path:
        return self._folder / "former"

    @contextmanager
    def building(self) -> Iterator[Path]:
        """An empty folder whose final content can be swapped in. It is removed on failure."""
        self._folder.mkdir()
        try:
            self._flag.touch()
            self._tree.mkdir()
            yield self._tree
            self._flag.write_text(_hash_of(self._tree), encoding="ascii")
        except BaseException:
            self.clean_up()
            raise

    def swap(self, *, replaced: frozenset[Path]) -> None:
        """Replace the tree with the new one. Files in `replaced` may be lost from the old tree, whoever wrote
        them."""
        try:
            if not self.root.exists():
                self._tree.rename(self.root)
            elif not exchange(self._tree, self.root):
                # For a moment there is no tree. A later process that finds none restores the old one.
                self.root.rename(self._former)
                self._tree.rename(self.root)
        finally:
            with suppress(OSError, NotWritten):  # the next writer removes the rest
                self.clean_up(replaced=replaced)

    def clean_up(self, *, replaced: frozenset[Path] = frozenset()) -> None:
        """Finish the work of an earlier writer; files of others go back into the tree.

        Raises:
            NotWritten: a foreign file cannot go back, because its place is taken.
        """
        if self._folder.is_symlink():
            raise NotWritten(f"nothing was written: {self._folder} is a link that modelyard did not make")
        if not self._folder.is_dir():
            return
        if self._former.exists() and not self.root.exists():
            self._former.rename(self.root)
        if self._flag.exists():
            said = self._flag.read_text(encoding="ascii", errors="replace")
            if not said or said == _hash_of(self._tree):  # it was never swapped in
                self._flag.write_text("", encoding="ascii")
                _remove(self._tree)
        for folder in (self._tree, self._former):
            if folder.is_dir():
                self._end(folder, replaced)
        with suppress(OSError):
            if os.listdir(self._folder) == [self._flag.name]:
                self._flag.unlink()  # last: without the flag a partial tree would be taken for a complete one
            self._folder.rmdir()
        if self._folder.exists():
            raise NotWritten(
                f"nothing was written: {self._folder} holds files that modelyard did not write; move them away"
            )

    def _end(self, folder: Path, replaced: frozenset[Path]) -> None:
        try:
            owned = read_ownership(folder)
        except NotWritten:
            owned = None
        ours = {str(path): written for path, written in (owned.files if owned else {}).items()}
        lost = {str(path) for path in replaced}
        # Plain strings for speed: a tree has thousands of files.
        for here, folders, names in os.walk(folder, topdown=False):
            _make_writable(here)
            links = [name for name in folders if os.path.islink(os.path.join(here, name))]
            for file in (os.path.join(here, name) for name in (*names, *links)):
                below = file[len(str(folder)) + 1 :]
                if below == MARKER:
                    continue  # kept to the end: it lists our files
                if (
                    below in lost
                    or _same(Path(file), self.root / below)
                    or _as_written(file, ours.get(below))
                ):
                    os.unlink(file)
                elif not os.path.lexists(there := self.root / below):
                    there.parent.mkdir(parents=True, exist_ok=True)
                    os.rename(file, there)
            with suppress(OSError):
                os.rmdir(here)
        if folder.is_dir() and os.listdir(folder) == [MARKER]:
            (folder / MARKER).unlink()
            folder.rmdir()


def _hash_of(tree: Path) -> str:
    """The hash of a tree's list; `none` if it has no list."""
    with suppress(OSError):
        return digest((tree / MARKER).read_bytes())
    return "none"


def _as_written(file: str, written: str | None) -> bool:
    """Whether our file is unchanged: somebody may have edited it a moment ago."""
    return written is not None and not os.path.islink(file) and digest(Path(file).read_bytes()) == written


def _remove(tree: Path) -> None:
    for here, _, _ in os.walk(tree):
        _make_writable(here)
    shutil.rmtree(tree, ignore_errors=True)


def _make_writable(folder: str) -> None:
    """Folders of others may be read-only, like Go's module cache."""
    if not os.access(folder, os.W_OK):
        with suppress(OSError):
            os.chmod(folder, os.stat(folder).st_mode | stat.S_IWUSR | stat.S_IXUSR)


def _same(one: Path, other: Path) -> bool:
    """Whether both paths are the same file, or files with equal content."""
    with suppress(OSError):
        if os.path.samestat(one.lstat(), other.lstat()):
            return True
        if one.is_symlink() and other.is_symlink():
            return one.readlink() == other.readlink()
        return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)
    return False
