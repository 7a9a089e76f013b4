"""Model families: facts that follow from the class and are not in the config, from a dated table."""

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
    """Facts of the language model class `architecture`; None if it is unknown."""
    found: _Table | None = families()["text"].get(architecture)
    return found


def vision_family(architecture: str) -> _Table | None:
    """Facts of the vision model class `architecture`; None if it is unknown."""
    found: _Table | None = families()["vision"].get(architecture)
    return found
