"""The YAML reader: text to data, with the line and column of every key and value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaml.error import MarkedYAMLError, YAMLError  # type: ignore[import-untyped]

from modelyard.findings import Finding, Location
from modelyard.reading import SPEC, FileKind, read_file, short
from modelyard.spec.yaml_problems import explained
from modelyard.spec.yaml_reader import FieldPath, TooMuch, location_of, yaml_data

MOST_LINES = 10_000
"""Maximum lines per file, including blank lines and comments."""


@dataclass(frozen=True)
class YamlSource:
    """A parsed YAML file: `data` is its content, `locate` gives locations."""

    file: str
    text: str
    data: dict[str, Any]
    keys: Mapping[FieldPath, Location]
    values: Mapping[FieldPath, Location]

    def locate(self, field: FieldPath, *, key: bool = False) -> Location:
        """The location of `field`, or of its nearest enclosing field in the file."""
        places = self.keys if key else self.values
        for end in range(len(field), 0, -1):
            if (place := places.get(field[:end])) is not None:
                return place
        return Location(self.file)


def read_yaml(path: Path, *, shown_as: str | None = None, kind: FileKind = SPEC) -> YamlSource | Finding:
    """Read `path` as a YAML 1.2 mapping, or return the finding that says why it is not one."""
    text = read_file(path, kind, shown_as=shown_as)
    return text if isinstance(text, Finding) else parse_yaml(text, shown_as or str(path))


# Characters that YAML does not allow in a file (1.2, production 1): control characters except tabs and line
# ends.
_FOREIGN = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Only `%YAML 1.2` is allowed, because it changes nothing. Other directives change the meaning of `yes` and
# `010`, or tag names.
_DIRECTIVE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n|%YAML[ \t]+1\.2[ \t]*(?:#[^\n]*)?\r?\n)*+(?=%)")


_LESS = "divide the file, or write less of it"


def parse_yaml(text: str, file: str) -> YamlSource | Finding:
    """Parse `text`; `file` is the name that findings show."""
    if foreign := _FOREIGN.search(text):
        name = f"control character U+{ord(foreign[0]):04X} in the text"
        return Finding("YAML001", name, "take it out", _counted(text, foreign.start(), file))
    if directive := _DIRECTIVE.match(text):
        place = _counted(text, directive.end(), file)
        return Finding("YAML001", "a directive; files are YAML 1.2 and need none", "take the line out", place)
    lines = max(text.count("\n"), text.count("\r"))
    if lines > MOST_LINES:
        problem = f"the file has {lines:,} lines; {MOST_LINES:,} are the most"
        return Finding("YAML002", problem, _LESS, Location(file, MOST_LINES + 1))
    try:
        found = yaml_data(text, file)
    except TooMuch as error:
        return Finding("YAML002", str(error.problem), _LESS, location_of(error.problem_mark, file))
    except MarkedYAMLError as error:
        return Finding("YAML001", *explained(error, text), _wrong_at(error, text, file))
    except YAMLError as error:
        return Finding("YAML001", short(str(error).splitlines()[0], 200), "correct the YAML", Location(file))
    data = found.data
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        return Finding(
            "YAML001",
            "the file must hold a mapping of names to values",
            "write `key: value` lines",
            Location(file),
        )
    return YamlSource(file, text, data, found.keys, found.values)


def _wrong_at(error: MarkedYAMLError, text: str, file: str) -> Location:
    """The error location: the line that is no `key: value`, the start of an unterminated construct, and at
    most the last character."""
    end = len(text.rstrip())
    marks = [error.problem_mark, error.context_mark]
    for mark in reversed(marks) if error.context == "while scanning a simple key" else marks:
        if mark is not None and mark.index < end:
            return location_of(mark, file)
    return _counted(text, end, file)


def _counted(text: str, position: int, file: str) -> Location:
    before = text[:position]
    return Location(file, before.count("\n") + 1, position - before.rfind("\n"))
