"""Which files of a folder are read: `.yaml` and `.yml`, and neither hidden ones nor what editors leave beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from modelyard.findings import Finding, Location

SUFFIXES = (".yaml", ".yml")


def yaml_files(folder: Path) -> list[Path]:
    """The files directly in `folder`, by name; none where it cannot be read."""
    return [path for path in _visible(folder) if path.suffix.lower() in SUFFIXES and not path.is_dir()]


def team_folders(folder: Path) -> list[Path]:
    """The folders directly in `folder`, by name: each holds the models of the team that it is called after."""
    return [path for path in _visible(folder) if path.is_dir()]


def unread_findings(team: Path) -> Iterator[Finding]:
    """Files below a team's folder that would be overlooked."""
    for folder in team_folders(team):
        for path in sorted(folder.rglob("*")):
            hidden = any(part.startswith(".") for part in path.relative_to(team).parts)
            if path.suffix.lower() in SUFFIXES and not hidden:
                yield Finding(
                    "SPEC005",
                    f"nobody reads a model file at this depth, below the folder of team '{team.name}'",
                    f"move it to {team / path.name}",
                    Location(str(path)),
                )


def environment_files(folder: Path) -> Mapping[str, list[Path]]:
    """Environments by name; more than one file a name is a mistake."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in yaml_files(folder):
        found[path.stem].append(path)
    return found


def _visible(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    return [path for path in entries if not path.name.startswith((".", "#")) and not path.name.endswith("~")]
