"""The folder beside a tree in which its successor is built, and in which its predecessor ends.

However a process ends, the next one can tell what it finds there: with the flag a tree that was not finished, without it
one that is finished or was replaced.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from modelyard.writing.exchange import exchange
from modelyard.writing.ownership import MARKER, read_ownership
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
        """An empty folder; what is in it at the end can be swapped in. Nothing of it stays where that fails."""
        self._folder.mkdir()
        try:
            self._flag.touch()
            self._tree.mkdir()
            yield self._tree
            self._flag.unlink()
        except BaseException:
            self.clean_up()
            raise

    def swap(self, *, replaced: frozenset[Path]) -> None:
        """Put what was built in the place of the tree. `replaced` may be lost of the former one, whoever wrote it."""
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
        if not self._folder.is_dir():
            return
        if self._former.exists() and not self.root.exists():
            self._former.rename(self.root)
        if self._flag.exists():
            shutil.rmtree(self._tree, ignore_errors=True)
            self._flag.unlink()  # last: without it a part of a tree would be taken for a whole one
        for folder in (self._tree, self._former):
            if folder.is_dir():
                self._end(folder, replaced)
        try:
            self._folder.rmdir()
        except OSError:
            raise NotWritten(
                f"{self._folder} holds files that modelyard did not write; move them away"
            ) from None

    def _end(self, folder: Path, replaced: frozenset[Path]) -> None:
        try:
            owned = read_ownership(folder)
        except NotWritten:
            owned = None
        ours = {str(path) for path in (*replaced, *(owned.files if owned else ()))}
        # Plain strings: a tree has thousands of files.
        for here, folders, names in os.walk(folder, topdown=False):
            links = [name for name in folders if os.path.islink(os.path.join(here, name))]
            for file in (os.path.join(here, name) for name in (*names, *links)):
                below = file[len(str(folder)) + 1 :]
                if below == MARKER:
                    continue  # to the last it says what is ours
                if below in ours or _same(Path(file), self.root / below):
                    os.unlink(file)
                elif not os.path.lexists(there := self.root / below):
                    there.parent.mkdir(parents=True, exist_ok=True)
                    os.rename(file, there)
            with suppress(OSError):
                os.rmdir(here)
        if folder.is_dir() and os.listdir(folder) == [MARKER]:
            (folder / MARKER).unlink()
            folder.rmdir()


def _same(one: Path, other: Path) -> bool:
    """Whether both names are of one file, or of two that are alike."""
    with suppress(OSError):
        if os.path.samestat(one.lstat(), other.lstat()):
            return True
        if one.is_symlink() and other.is_symlink():
            return one.readlink() == other.readlink()
        return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)
    return False
