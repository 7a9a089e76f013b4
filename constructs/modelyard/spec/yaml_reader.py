"""YAML 1.2 to plain data, with the location of every key and value, within limits.

libyaml splits the text into events; this module interprets them in one pass by the core schema of YAML 1.2
(section 10.3.2), so that `yes` and dates are text, plus merge keys, which users know from 1.1. Duplicate
keys, custom tags and keys that are lists are rejected.

A hundred bytes of YAML can expand to a billion values, because every alias repeats its anchor's value. So
values are counted after alias expansion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]
from yaml.error import MarkedYAMLError  # type: ignore[import-untyped]

from modelyard.findings import Location
from modelyard.reading import short

FieldPath = tuple[str | int, ...]

MOST_VALUES = 6_000
"""Maximum keys and values per file, aliases expanded. An environment with 300 overrides and 20 pools has
3,500."""
MOST_DEPTH = 64
"""Maximum nesting of mappings and lists; Kubernetes objects have about a dozen levels."""
LONGEST_KEY = 1024
"""Maximum characters of a key, which is also YAML's limit before the colon."""
LONGEST_NUMBER = 40
"""Maximum characters of a number. Python parses integers with thousands of digits but refuses to print
them."""

_CORE = "tag:yaml.org,2002:"
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# YAML 1.2 numbers, plus `_` and `0b` from 1.1, which users write and which cannot be mistaken for text.
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0b(?P<two>[01_]+)|0o(?P<eight>[0-7_]+)|0x(?P<sixteen>[0-9a-fA-F_]+)|(?P<ten>[0-9][0-9_]*))"
)
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)"
)
_SPECIAL = re.compile(r"(?P<sign>[-+]?)\.(?P<word>inf|Inf|INF|nan|NaN|NAN)")
_BASES = {"two": 2, "eight": 8, "sixteen": 16, "ten": 10}
_NUMERIC = frozenset("+-.0123456789")


class TooMuch(MarkedYAMLError):  # type: ignore[misc]
    """The text exceeds a limit at `problem_mark`."""


class NotPlainData(MarkedYAMLError):  # type: ignore[misc]
    """The text has something at `problem_mark` that no field can hold; `fix` says what to do."""

    def __init__(self, problem: str, fix: str, mark: Any) -> None:
        super().__init__(None, None, problem, mark)
        self.fix = fix


@dataclass(frozen=True)
class YamlData:
    """The data of a text (None if it is empty), and the locations of keys and values, by path.

    Values from an alias or a merge key have the location where it is used.
    """

    data: Any
    keys: dict[FieldPath, Location]
    values: dict[FieldPath, Location]


def yaml_data(text: str, file: str) -> YamlData:
    """Parse `text`; locations refer to `file`.

    Raises:
        yaml.YAMLError: not YAML, or not data within the limits; mostly a `MarkedYAMLError`.
    """
    reader = _Reader(text, file)
    return YamlData(reader.document(), reader.keys, reader.values)


@dataclass(frozen=True)
class _Anchored:
    """The value of an anchor, and what each of its aliases counts against the limits."""

    value: Any
    text: str | None  # of a scalar
    size: int  # keys and values
    levels: int


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self.keys: dict[FieldPath, Location] = {}
        self.values: dict[FieldPath, Location] = {}
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.CBaseLoader)
        self._file = file
        self._anchors: dict[str, _Anchored | None] = {}  # None while the anchor's value is being read
        self._size = 0
        self._deepest = 0

    def document(self) -> Any:
        next(self._events)  # the stream begins
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        data = self._value(next(self._events), (), 1)
        next(self._events)  # the document ends
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise NotPlainData(
                "another document begins; a file holds one", "put it into a file of its own", after.start_mark
            )
        return data

    def _value(self, event: Any, path: FieldPath, depth: int) -> Any:
        """The value that starts with `event`; `depth` includes the value itself."""
        if path:
            self.values[path] = place = self._place(event)
            self.keys.setdefault(path, place)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth).value
        self._count(1, depth, event)
        if event.anchor is None:
            return self._own_value(event, path, depth)
        size, outer, self._deepest = self._size - 1, self._deepest, depth
        self._anchors[event.anchor] = None
        value = self._own_value(event, path, depth)
        self._anchors[event.anchor] = _Anchored(
            value,
            event.value if isinstance(event, yaml.ScalarEvent) else None,
            self._size - size,
            self._deepest - depth + 1,
        )
        self._deepest = max(outer, self._deepest)
        return value

    def _own_value(self, event: Any, path: FieldPath, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, path, depth)
        _check_tag(event, "seq")
        found: list[Any] = []
        while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
            found.append(self._value(item, (*path, len(found)), depth + 1))
        return found

    def _mapping(self, event: Any, path: FieldPath, depth: int) -> dict[Any, Any]:
        _check_tag(event, "map")
        own: dict[Any, Any] = {}
        merged: dict[Any, Any] | None = None
        while not isinstance(item := next(self._events), yaml.MappingEndEvent):
            key, text = self._key(item, depth + 1)
            merges = text == "<<" and isinstance(item, yaml.ScalarEvent) and _is_plain(item)
            if key in own or (merges and merged is not None):
                raise NotPlainData(f"the key {short(text)} stands twice", "keep one", item.start_mark)
            self.keys[*path, text] = self._place(item)
            start = next(self._events)
            value = self._value(start, (*path, text), depth + 1)
            if merges:
                merged = _merged(value, start)
            else:
                own[key] = value
        return own if merged is None else merged | own

    def _key(self, event: Any, depth: int) -> tuple[Any, str]:
        """A key as data and as written."""
        if isinstance(event, yaml.AliasEvent):
            found = self._alias(event, depth)
            key, text = found.value, found.text
        else:
            self._count(1, depth, event)
            text = event.value if isinstance(event, yaml.ScalarEvent) else None
            key = None if text is None else _scalar(event)
            if event.anchor is not None:
                self._anchors[event.anchor] = _Anchored(key, text, 1, 1)
        if text is None:
            raise NotPlainData(
                "a key is a mapping or a list, not a word",
                "quote a value that begins with a brace or a bracket",
                event.start_mark,
            )
        if len(text) > LONGEST_KEY:
            raise TooMuch(None, None, f"a key has more than {LONGEST_KEY} characters", event.start_mark)
        return key, text

    def _alias(self, event: Any, depth: int) -> _Anchored:
        name = short(event.anchor)
        if event.anchor not in self._anchors:
            raise NotPlainData(
                f"alias *{name} has no anchor before it",
                "quote a value that begins with *, or set the anchor before",
                event.start_mark,
            )
        found = self._anchors[event.anchor]
        if found is None:
            raise NotPlainData(
                f"alias *{name} stands within what it stands for", "write the value", event.start_mark
            )
        self._count(found.size, depth + found.levels - 1, event)
        return found

    def _count(self, size: int, depth: int, event: Any) -> None:
        self._size += size
        self._deepest = max(self._deepest, depth)
        if self._size > MOST_VALUES:
            problem = f"more than {MOST_VALUES:,} keys and values, aliases expanded"
            raise TooMuch(None, None, problem, event.start_mark)
        if depth > MOST_DEPTH:
            problem = f"more than {MOST_DEPTH} mappings and lists within one another"
            raise TooMuch(None, None, problem, event.start_mark)

    def _place(self, event: Any) -> Location:
        return location_of(event.start_mark, self._file)


def location_of(mark: Any, file: str) -> Location:
    """A position of libyaml, which counts from 0."""
    return Location(file, mark.line + 1, mark.column + 1)


def _merged(value: Any, event: Any) -> dict[Any, Any]:
    """The mapping of a merge key: if several mappings have a key, the first counts."""
    merged: dict[Any, Any] = {}
    for each in reversed(value if isinstance(value, list) else [value]):
        if not isinstance(each, dict):
            problem = "a key << brings in what is no mapping and no list of mappings"
            raise NotPlainData(problem, "give a mapping after <<, or quote the key", event.start_mark)
        merged |= each
    return merged


def _is_plain(event: Any) -> bool:
    """Whether the scalar has neither quotes nor a tag."""
    return bool(event.implicit[0]) and event.tag is None


def _check_tag(event: Any, kind: str) -> None:
    if event.tag not in (None, f"{_CORE}{kind}"):
        name = short(event.tag.removeprefix(_CORE))
        raise NotPlainData(
            f"the tag {name} means nothing here", "take it out, or quote the value", event.start_mark
        )


def _scalar(event: Any) -> Any:
    text: str = event.value
    if _is_plain(event):
        if text in _WORDS:
            return _WORDS[text]
        return _number(text, event) if text[0] in _NUMERIC else text
    if event.tag in (None, f"{_CORE}str"):
        return text
    kind = event.tag.removeprefix(_CORE)
    if kind not in _TAGGED:
        _check_tag(event, "str")
    value = _WORDS[text] if text in _WORDS else _number(text, event)
    if kind == "float" and type(value) is int:
        value = float(value)
    if not isinstance(value, _TAGGED[kind]) or (kind == "int" and isinstance(value, bool)):
        raise NotPlainData(
            f"not a value of type {kind}", "take the tag out, or quote the value", event.start_mark
        )
    return value


_TAGGED: dict[str, type] = {"null": type(None), "bool": bool, "int": int, "float": float}


def _number(text: str, event: Any) -> int | float | str:
    """`text` as a number if it is one, else unchanged."""
    if special := _SPECIAL.fullmatch(text):
        return float(special["sign"] + special["word"])
    found = _INTEGER.fullmatch(text)
    if found is None and not _FLOAT.fullmatch(text):
        return text
    if len(text) > LONGEST_NUMBER:
        problem = f"a number of {len(text):,} characters; {LONGEST_NUMBER} are the most"
        raise TooMuch(None, None, problem, event.start_mark)
    bare = text.replace("_", "")
    if found is None:
        return float(bare)
    digits = found[str(found.lastgroup)].replace("_", "")
    if not digits:
        return text
    value = int(digits, _BASES[str(found.lastgroup)])
    return -value if found["sign"] == "-" else value
