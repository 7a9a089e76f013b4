"""The files under `hardware/data`."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML


@cache
def yaml_table(name: str) -> dict[str, Any]:
    text = files("modelyard.hardware").joinpath("data", name).read_text(encoding="utf-8")
    table: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return table


@cache
def json_table(name: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(
        files("modelyard.hardware").joinpath("data", name).read_text(encoding="utf-8")
    )
    return table
