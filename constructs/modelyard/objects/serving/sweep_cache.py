"""Deletes revisions and compiled kernels that no model has named for weeks. The sweep's CronJob runs this
file alone, as text.

What is named today comes from the environment; a file in the cache remembers when each other folder was named
last. A folder that was never seen before begins today, so that a first run deletes nothing. Of a repository
that models use, the revision before stays for a rollback, however old it is. Only folders of fetch jobs
(hf/ORG/REPO/REVISION, whole or partial) and of kernels (compile/NAME) are ever looked at.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

LEDGER = ".named-last.json"
_GOING = ".going"
_PARTIAL = ".partial"


@dataclass(frozen=True)
class FolderFate:
    """What happens to one folder, and why."""

    folder: str
    goes: bool
    why: str


@dataclass(frozen=True)
class Past:
    """What is remembered of one folder: when it was seen first, and when a model named it last."""

    seen: date
    named: date | None = None

    def unnamed(self, today: date) -> int:
        """Days for which no model has named it, as far as anybody knows."""
        return (today - (self.named or self.seen)).days


def main() -> None:
    root, named = Path(os.environ["ROOT"]), frozenset(json.loads(os.environ["NAMED"]))
    days, delete = int(os.environ["DAYS"]), os.environ["MODE"] == "delete"
    today = date.fromisoformat(os.environ.get("TODAY") or date.today().isoformat())
    if not named:
        print("no model names a folder: nothing is judged, and nothing is deleted")
        return
    found = [*folders(root, os.environ["MARKER"])]
    last = remembered(root, found, named, today)
    went = 0
    for verdict in verdicts(root, found, named, last, today, days):
        if not verdict.goes:
            print("keep", f"{verdict.folder}:", verdict.why)
            continue
        size = _bytes(root / verdict.folder)
        went += size
        print(
            "delete" if delete else "would delete",
            f"{verdict.folder}:",
            f"{verdict.why}, {size / 2**30:.1f} GiB",
        )
        sys.stdout.flush()
        if delete:
            _delete(root / verdict.folder)
            last.pop(verdict.folder, None)
    for left in _left_over(root):  # of a run that was stopped
        print("delete" if delete else "would delete", left.relative_to(root), "of a run that was stopped")
        if delete:
            shutil.rmtree(left)
    write(root, last)
    print(f"{went / 2**30:.1f} GiB", "deleted" if delete else "could be deleted")


def folders(root: Path, marker: str) -> Iterator[str]:
    """Revisions of repositories, whole or partial, and folders of kernels, relative to `root`."""
    for repository in _folders_in(*_folders_in(*_folders_in(root / "hf"))):
        if repository.name.endswith(_GOING):
            continue
        if repository.name.endswith(_PARTIAL) or (repository / marker).is_file():
            yield repository.relative_to(root).as_posix()
    for kernels in _folders_in(root / "compile"):
        if not kernels.name.endswith(_GOING):
            yield kernels.relative_to(root).as_posix()


def remembered(root: Path, found: list[str], named: frozenset[str], today: date) -> dict[str, Past]:
    """The past of each folder; of those that were never seen before, it begins today."""
    try:
        stored = json.loads((root / LEDGER).read_text(encoding="utf-8"))
        before = {
            str(folder): Past(*(date.fromisoformat(day) for day in days if day))
            for folder, days in stored.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        before = {}  # unreadable: everything begins today
    return {
        folder: replace(past, named=today) if _is_named(folder, named) else past
        for folder in found
        for past in [before.get(folder, Past(today))]
    }


def verdicts(
    root: Path, found: list[str], named: frozenset[str], last: Mapping[str, Past], today: date, days: int
) -> Iterator[FolderFate]:
    """What happens to each folder."""
    rollback = _rollbacks(root, found, named, last)
    for folder in sorted(found):
        unnamed = last[folder].unnamed(today)
        if _is_named(folder, named):
            yield FolderFate(folder, False, "a model names it")
        elif folder in rollback:
            yield FolderFate(folder, False, "the revision before, for a rollback")
        elif unnamed < days:
            yield FolderFate(folder, False, f"unnamed for {unnamed} of {days} days")
        else:
            yield FolderFate(folder, True, f"unnamed for {unnamed} days")


def write(root: Path, last: Mapping[str, Past]) -> None:
    """Remember the days; whole or not at all."""
    days = {
        folder: [past.seen.isoformat(), past.named.isoformat() if past.named else None]
        for folder, past in sorted(last.items())
    }
    text = json.dumps(days, indent=1)
    beside = root / f"{LEDGER}.new"
    beside.write_text(text, encoding="utf-8")
    beside.replace(root / LEDGER)


def _rollbacks(
    root: Path, found: list[str], named: frozenset[str], last: Mapping[str, Past]
) -> frozenset[str]:
    """Of every repository with a named revision, the one that was named last before; where nobody remembers,
    the youngest download."""
    kept = set()
    for repository in {folder.rpartition("/")[0] for folder in named if folder.startswith("hf/")}:
        others = [
            folder
            for folder in found
            if folder.rpartition("/")[0] == repository
            and folder not in named
            and not folder.endswith(_PARTIAL)
        ]
        if others:
            ages = {each: (root / each).stat().st_mtime for each in others}
            kept.add(max(others, key=lambda each: (last[each].named or date.min, ages[each])))
    return frozenset(kept)


def _is_named(folder: str, named: frozenset[str]) -> bool:
    """Also the part of a download that still runs."""
    return folder in named or folder.removesuffix(_PARTIAL) in named


def _folders_in(*parents: Path) -> Iterator[Path]:
    """Folders in `parents`, without links: what they lead to is nobody's to delete."""
    for parent in parents:
        if parent.is_dir() and not parent.is_symlink():
            yield from sorted(each for each in parent.iterdir() if each.is_dir() and not each.is_symlink())


def _left_over(root: Path) -> list[Path]:
    revisions = _folders_in(*_folders_in(*_folders_in(root / "hf")))
    return [each for each in (*revisions, *_folders_in(root / "compile")) if each.name.endswith(_GOING)]


def _delete(folder: Path) -> None:
    """Renamed first, at once: a half-deleted revision must not look whole to anybody."""
    going = folder.with_name(folder.name + _GOING)
    folder.rename(going)
    shutil.rmtree(going)


def _bytes(folder: Path) -> int:
    return sum(each.lstat().st_size for each in folder.rglob("*") if each.is_file() and not each.is_symlink())


if __name__ == "__main__":
    main()
