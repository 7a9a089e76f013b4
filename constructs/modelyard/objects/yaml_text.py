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
    """Readable blocks for texts of several lines, quotes around what YAML 1.1 takes for something else, no anchors.

    PyYAML asks of every scalar what it could be taken for; here every word is asked about once, as thousands of objects
    hold the same ones.
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
    """YAML with sorted keys and readable blocks for texts of several lines."""
    text: str = yaml.dump(
        item, Dumper=_Dumper, default_flow_style=False, sort_keys=True, width=4096, allow_unicode=True
    )
    return text
