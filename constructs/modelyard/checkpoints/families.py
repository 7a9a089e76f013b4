"""Families of models: what their classes fix and their configs do not say, from a dated table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from modelyard.reading.table import read_table

_Table = Mapping[str, Any]


@cache
def families() -> _Table:
    """The table: `text` and `vision` families by class, `modelTypes` and `aliases`."""
    return MappingProxyType(read_table(files("modelyard.checkpoints").joinpath("data", "families.yaml")))


def text_family(architecture: str) -> _Table | None:
    """What the class `architecture` of a language model fixes; None when it is not known."""
    found: _Table | None = families()["text"].get(architecture)
    return found


def vision_family(architecture: str) -> _Table | None:
    """What the class `architecture` of a vision model fixes; None when it is not known."""
    found: _Table | None = families()["vision"].get(architecture)
    return found
