"""Plain data as YAML: sorted keys, the same bytes every time, readable, and safe for readers of YAML 1.1."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import yaml  # type: ignore[import-untyped]

# Kubernetes' own reader speaks YAML 1.1: without quotes these words are truths there, and 1:30 is ninety.
_NOT_TEXT = re.compile(r"y|n|yes|no|on|off|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", re.IGNORECASE)


class _Dumper(yaml.CSafeDumper):  # type: ignore[misc]
    """Readable blocks for texts of several lines, quotes around what YAML 1.1 takes for something else, no
    anchors.

    PyYAML asks of every scalar what it could be taken for; here every word is asked about once, as thousands
    of objects hold the same ones.
    """

    def represent_data(self, data: Any) -> yaml.Node:
        if type(data) is str:
            return yaml.ScalarNode(_TEXT, data, style=_style(data))
        if type(data) is dict:
            pairs = [(self.represent_data(key), self.represent_data(data[key])) for key in sorted(data)]
            return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=False)
        return super().represent_data(data)

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def resolve(self, kind: Any, value: str, implicit: tuple[bool, bool]) -> str:
        return _resolved(kind, value if kind is yaml.ScalarNode else None, implicit)


_TEXT = "tag:yaml.org,2002:str"
_resolver = yaml.resolver.Resolver()


@lru_cache(maxsize=1 << 16)
def _style(value: str) -> str | None:
    return "|" if "\n" in value else "'" if _NOT_TEXT.fullmatch(value) else None


@lru_cache(maxsize=1 << 16)
def _resolved(kind: Hashable, value: str | None, implicit: tuple[bool, bool]) -> str:
    tag: str = _resolver.resolve(kind, value, implicit)
    return tag


def _number(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    # jsii hands every number back as a float.
    return dumper.represent_int(int(value)) if value.is_integer() else dumper.represent_float(value)


_Dumper.add_representer(float, _number)


def to_yaml(item: dict[str, Any]) -> str:
    """YAML with sorted keys and readable blocks for texts of several lines.

    Blocks of mappings and lists are laid out here, which takes a quarter of the time of PyYAML's nodes and
    events; how a text is written, PyYAML says, once for every text. A test holds both against each other.
    """
    lines: list[str] = []
    try:
        _mapping(item, "", lines)
    except _Unusual:
        return emitted(item)
    lines.append("")
    return "\n".join(lines) if item else "{}\n"


def emitted(item: dict[str, Any]) -> str:
    """The same, by PyYAML alone."""
    text: str = yaml.dump(
        item, Dumper=_Dumper, default_flow_style=False, sort_keys=True, width=_WIDTH, allow_unicode=True
    )
    return text


_WIDTH = 4096
_LONGEST = 1024
"""Texts up to here are on one line wherever they stand."""


_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")


_OF_ITSELF = re.compile(r"[A-Za-z(/](?:[!-9;-~]|:(?=[!-~])| +(?=[!-\"$-~]))*")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
"""Plain words that a reader of YAML 1.1 takes for something else."""


class _Unusual(Exception):
    """Something whose spelling depends on where it stands."""


def _mapping(node: dict[str, Any], indent: str, lines: list[str]) -> None:
    deeper = indent + "  "
    for key in sorted(node):
        value = node[key]
        kind = type(value)
        if kind is str:
            text = _text(value)
            if isinstance(text, str):
                lines.append(f"{indent}{_key(key)}: {text}")
            else:
                _block(f"{indent}{_key(key)}: ", text, deeper, lines)
        elif kind is dict and value:
            lines.append(f"{indent}{_key(key)}:")
            _mapping(value, deeper, lines)
        elif kind is list and value:
            lines.append(f"{indent}{_key(key)}:")
            _sequence(value, indent, lines)
        else:
            lines.append(f"{indent}{_key(key)}: {_plain(value)}")


def _sequence(node: list[Any], indent: str, lines: list[str]) -> None:
    deeper = indent + "  "
    for value in node:
        kind = type(value)
        if kind is str:
            text = _text(value)
            if isinstance(text, str):
                lines.append(f"{indent}- {text}")
            else:
                _block(f"{indent}- ", text, deeper, lines)
        elif (kind is dict or kind is list) and value:
            first = len(lines)
            if kind is dict:
                _mapping(value, deeper, lines)
            else:
                _sequence(value, deeper, lines)
            lines[first] = f"{indent}- {lines[first][len(deeper) :]}"
        else:
            lines.append(f"{indent}- {_plain(value)}")


def _block(start: str, text: tuple[str, ...], indent: str, lines: list[str]) -> None:
    header, *body = text
    lines.append(start + header)
    lines += [indent + line if line else "" for line in body]


def _plain(value: Any) -> str:
    """Everything but texts, and mappings and lists that hold something."""
    if value is None or value is True or value is False:
        return "null" if value is None else "true" if value else "false"
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is float:
        return _spelled(value)
    if kind is dict or kind is list:
        return "{}" if kind is dict else "[]"
    raise _Unusual


@lru_cache(maxsize=1 << 10)
def _spelled(value: float) -> str:
    return emitted({"k": value})[3:-1]


@lru_cache(maxsize=1 << 12)
def _key(key: str) -> str:
    text = _text(key) if type(key) is str and len(key) < 100 and "\n" not in key else None
    if not isinstance(text, str):
        raise _Unusual
    return text


@lru_cache(maxsize=1 << 16)
def _text(value: str) -> str | tuple[str, ...]:
    """A text on one line, or the header of a block and its lines without indentation."""
    if ("\n" not in value and len(value) > _LONGEST) or _OTHER_BREAKS.search(value):
        raise _Unusual
    # What most texts are, PromQL among them: nothing in them is a sign of YAML's where they stand.
    if _OF_ITSELF.fullmatch(value) and value.lower() not in _WORDS:
        return value
    first, *others = emitted({"k": value})[3:].split("\n")[:-1]
    if not others:
        return first
    if not first.startswith("|") or any(line and not line.startswith("  ") for line in others):
        raise _Unusual
    return (first, *(line[2:] for line in others))
