"""The one YAML reader: text to data, with the line and column of every key and value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from modelyard.findings import Finding, Location

FieldPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Source:
    """One YAML file as read: `data` is what it says, `locate` where it says so."""

    file: str
    text: str
    data: dict[str, Any]
    keys: Mapping[FieldPath, Location]
    values: Mapping[FieldPath, Location]

    def locate(self, field: FieldPath, *, key: bool = False) -> Location:
        """The place of `field`, or of the nearest field around it that the file holds."""
        places = self.keys if key else self.values
        for end in range(len(field), 0, -1):
            if (place := places.get(field[:end])) is not None:
                return place
        return Location(self.file)


def read_yaml(path: Path, *, shown_as: str | None = None) -> Source | Finding:
    """Read `path` as a YAML 1.2 mapping; a file that is none comes back as the finding that says why."""
    file = shown_as or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return Finding(
            "YAML001", f"cannot read the file: {reason}", "check the path and its permissions", Location(file)
        )
    return parse_yaml(text, file)


def parse_yaml(text: str, file: str) -> Source | Finding:
    """Parse `text`; `file` is the name that findings show."""
    try:
        reader = YAML(typ="safe", pure=True)
        root = reader.compose(text)
        data = reader.constructor.construct_document(root) if root else None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
        problem = " ".join(str(error.problem or error.context or "not valid YAML").split())
        return Finding("YAML001", problem, "correct the YAML at this position", place)
    except YAMLError as error:
        return Finding("YAML001", str(error).splitlines()[0], "correct the YAML", Location(file))
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        return Finding(
            "YAML001",
            "the file must hold a mapping of names to values",
            "write `key: value` lines",
            Location(file),
        )
    keys: dict[FieldPath, Location] = {}
    values: dict[FieldPath, Location] = {}
    _index(root, (), file, keys, values)
    return Source(file, text, data, keys, values)


def _index(
    node: Node, path: FieldPath, file: str, keys: dict[FieldPath, Location], values: dict[FieldPath, Location]
) -> None:
    if path:
        values[path] = _place(node, file)
        keys.setdefault(path, values[path])
    if isinstance(node, MappingNode):
        for key_node, value_node in node.value:
            child = (*path, str(key_node.value))
            keys[child] = _place(key_node, file)
            _index(value_node, child, file, keys, values)
    elif isinstance(node, SequenceNode):
        for position, item in enumerate(node.value):
            _index(item, (*path, position), file, keys, values)


def _place(node: Node, file: str) -> Location:
    return Location(file, node.start_mark.line + 1, node.start_mark.column + 1)
