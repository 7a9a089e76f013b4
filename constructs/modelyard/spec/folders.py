"""Which files of a folder are read: `.yaml` and `.yml`, except hidden files and editor backups."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from modelyard.findings import Finding, Location

SUFFIXES = (".yaml", ".yml")
RECORDS = "checkpoints"
"""Folder of the checkpoints' records among the model files."""
_MOST_ENTRIES = 5_000
"""Maximum entries below a team's folder; with more, it is not a folder of model files."""
_MOST_UNREAD = 20


def yaml_files(folder: Path) -> list[Path]:
    """The YAML files directly in `folder`, sorted by name.

    Raises:
        OSError: it cannot be read.
    """
    return [path for path in _visible(folder) if _is_yaml(path.name) and not path.is_dir()]


def team_folders(folder: Path) -> list[Path]:
    """The folders directly in `folder`, by name: each holds the models of the team with its name. The folder
    of the checkpoints' records is no team's.

    Raises:
        OSError: it cannot be read.
    """
    return [path for path in _visible(folder) if path.is_dir() and path.name != RECORDS]


def misplaced_models(folder: Path) -> list[Finding]:
    """YAML files among the records of checkpoints, which are not read.

    Raises:
        OSError: the folder cannot be read.
    """
    records = folder / RECORDS
    what = f"nobody reads a model file here: '{RECORDS}' holds the records of checkpoints"
    found = yaml_files(records)[:_MOST_UNREAD] if records.is_dir() else []
    fix = f"move it to {folder}, or to the folder of a team with another name"
    return [Finding("SPEC005", what, fix, Location(str(path))) for path in found]


def unread_findings(team: Path) -> Iterator[Finding]:
    """Nested YAML files below a team's folder, which are not read. Symlinks to folders are not followed."""
    unread = 0
    entries = 0
    for here, folders, names in os.walk(team):
        folders[:] = sorted(name for name in folders if _is_visible(name))
        entries += len(folders) + len(names)
        if entries > _MOST_ENTRIES:
            yield _misplaced(
                team,
                team,
                f"the folder of team '{team.name}' holds more than {_MOST_ENTRIES:,} files and folders",
            )
            return
        for name in sorted(names) if Path(here) != team else ():
            if not _is_yaml(name) or not _is_visible(name):
                continue
            unread += 1
            if unread > _MOST_UNREAD:
                return
            what = f"nobody reads a model file at this depth, below the folder of team '{team.name}'"
            yield _misplaced(team, Path(here, name), what)


def environment_files(folder: Path) -> Mapping[str, list[Path]]:
    """Environment files by name; more than one file per name is an error. Empty if the folder cannot be
    read."""
    found: dict[str, list[Path]] = defaultdict(list)
    try:
        files = yaml_files(folder)
    except OSError:
        files = []
    for path in files:
        found[path.stem].append(path)
    return found


def _misplaced(team: Path, place: Path, what: str) -> Finding:
    fix = f"move it to {team / place.name}" if place != team else "move what is no model file elsewhere"
    return Finding("SPEC005", what, fix, Location(str(place)))


def _visible(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if _is_visible(path.name)]


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "#")) and not name.endswith("~")


def _is_yaml(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)
