"""Tables that a package carries beside its code."""

from __future__ import annotations

import json
from importlib.resources.abc import Traversable
from typing import Any

import yaml  # type: ignore[import-untyped]


def read_table(file: Traversable) -> dict[str, Any]:
    """A YAML or JSON table of a package, by the suffix of its name.

    PyYAML's C loader reads in milliseconds what a YAML 1.2 reader needs a tenth of a second for. It reads
    YAML 1.1, so a test holds every shipped table against a reader of 1.2.
    """
    text = file.read_text(encoding="utf-8")
    found: dict[str, Any] = (
        json.loads(text) if file.name.endswith(".json") else yaml.load(text, Loader=yaml.CSafeLoader)
    )
    return found
