"""The folder beside a tree in which its successor is built, and in which its predecessor ends.

However a process ends, the next one can tell what it finds there by the flag. It is empty while a tree is
built, and has the hash of that tree's list when it is whole: where the list in the folder has that hash, the
tree was never swapped in.
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
    """The scratch folder of the tree at `root`; whoever uses it holds the lock of `root`'s parent."""

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
        """An empty folder; what is in it at the end can be swapped in. Nothing of it stays where that
        fails."""
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
        """Put what was built in the place of the tree. `replaced` may be lost of the former one, whoever
        wrote it."""
        try:
            if not self.root.exists():
                self._tree.rename(self.root)
            elif not exchange(self._tree, self.root):
                # For a moment there is no tree. Whoever finds that puts the former one back.
                self.root.rename(self._former)
                self._tree.rename(self.root)
        finally:
            with suppress(OSError, NotWritten):  # what cannot be removed now is a matter of the next writer
                self.clean_up(replaced=replaced)

    def clean_up(self, *, replaced: frozenset[Path] = frozenset()) -> None:
        """Finish what an earlier writer began; what is not ours goes back into the tree.

        Raises:
            NotWritten: something of somebody else is left that has no place there any more.
        """
        if self._folder.is_symlink():
            raise NotWritten(f"nothing was written: {self._folder} is a link that modelyard did not make")
        if not self._folder.is_dir():
            return
        if self._former.exists() and not self.root.exists():
            self._former.rename(self.root)
        if self._flag.exists():
            said = self._flag.read_text(encoding="ascii", errors="replace")
            if not said or said == _hash_of(self._tree):  # it was never the tree
                self._flag.write_text("", encoding="ascii")
                _remove(self._tree)
        for folder in (self._tree, self._former):
            if folder.is_dir():
                self._end(folder, replaced)
        with suppress(OSError):
            if os.listdir(self._folder) == [self._flag.name]:
                self._flag.unlink()  # last: without it a part of a tree would be taken for a whole one
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
        # Plain strings: a tree has thousands of files.
        for here, folders, names in os.walk(folder, topdown=False):
            _make_writable(here)
            links = [name for name in folders if os.path.islink(os.path.join(here, name))]
            for file in (os.path.join(here, name) for name in (*names, *links)):
                below = file[len(str(folder)) + 1 :]
                if below == MARKER:
                    continue  # to the last it says what is ours
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
    """The hash of a tree's list; nothing where it has none."""
    with suppress(OSError):
        return digest((tree / MARKER).read_bytes())
    return "none"


def _as_written(file: str, written: str | None) -> bool:
    """Whether a file of ours is as it was written: somebody may have edited it a moment ago."""
    return written is not None and not os.path.islink(file) and digest(Path(file).read_bytes()) == written


def _remove(tree: Path) -> None:
    for here, _, _ in os.walk(tree):
        _make_writable(here)
    shutil.rmtree(tree, ignore_errors=True)


def _make_writable(folder: str) -> None:
    """A copy of a folder of somebody else may be read-only, as those of Go's modules are."""
    if not os.access(folder, os.W_OK):
        with suppress(OSError):
            os.chmod(folder, os.stat(folder).st_mode | stat.S_IWUSR | stat.S_IXUSR)


def _same(one: Path, other: Path) -> bool:
    """Whether both names are of one file, or of two that are alike."""
    with suppress(OSError):
        if os.path.samestat(one.lstat(), other.lstat()):
            return True
        if one.is_symlink() and other.is_symlink():
            return one.readlink() == other.readlink()
        return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)
    return False
