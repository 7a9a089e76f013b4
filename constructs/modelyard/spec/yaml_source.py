"""The one YAML reader: text to data, with the line and column of every key and value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from modelyard.findings import Finding, Location
from modelyard.reading import SPEC, FileKind, read_file, short
from modelyard.spec.yaml_bounds import MOST_LINES, TooMuch, bounded_yaml

FieldPath = tuple[str | int, ...]


@dataclass(frozen=True)
class YamlSource:
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


def read_yaml(path: Path, *, shown_as: str | None = None, kind: FileKind = SPEC) -> YamlSource | Finding:
    """Read `path` as a YAML 1.2 mapping; a file that is none comes back as the finding that says why."""
    text = read_file(path, kind, shown_as=shown_as)
    return text if isinstance(text, Finding) else parse_yaml(text, shown_as or str(path))


# What YAML allows in a file (1.2, production 1); tabs and line ends are among it, other control characters
# are not.
_FOREIGN = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# The one directive that says nothing new. Others change what `yes` and `010` mean, or the names of tags.
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
        reader = bounded_yaml()
        root = reader.compose(text)
        data = reader.constructor.construct_document(root) if root else None
    except TooMuch as error:
        mark = error.problem_mark
        place = Location(file, mark.line + 1, mark.column + 1)
        return Finding("YAML002", str(error.problem), _LESS, place)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
        problem = " ".join(str(error.problem or error.context or "not valid YAML").split())
        problem = short(
            problem.split(" with value ")[0], 200
        )  # of a key that stands twice: its values say nothing
        return Finding("YAML001", problem, "correct the YAML at this position", place)
    except YAMLError as error:
        return Finding("YAML001", short(str(error).splitlines()[0], 200), "correct the YAML", Location(file))
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
    return YamlSource(file, text, data, keys, values)


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


def _counted(text: str, position: int, file: str) -> Location:
    before = text[:position]
    return Location(file, before.count("\n") + 1, position - before.rfind("\n"))


def _place(node: Node, file: str) -> Location:
    return Location(file, node.start_mark.line + 1, node.start_mark.column + 1)
