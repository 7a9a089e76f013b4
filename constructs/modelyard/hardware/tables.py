"""The files under `hardware/data`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from modelyard.reading.table import read_table


@cache
def yaml_table(name: str) -> dict[str, Any]:
    return read_table(files("modelyard.hardware").joinpath("data", name))


@cache
def json_table(name: str) -> dict[str, Any]:
    return read_table(files("modelyard.hardware").joinpath("data", name))
