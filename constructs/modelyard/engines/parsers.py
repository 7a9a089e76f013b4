"""Tool-call and reasoning parsers per model family."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from modelyard.reading.table import read_table


@dataclass(frozen=True)
class Parsers:
    """Values of `--tool-call-parser` and `--reasoning-parser`; None if the family has none."""

    tools: str | None = None
    reasoning: str | None = None


@cache
def _table() -> dict[str, Any]:
    return read_table(files("modelyard.engines").joinpath("data", "parsers.yaml"))


def family_parsers(model_id: str, model_type: str) -> dict[str, str]:
    """vLLM's parser names of a model, by the longest matching prefix of its ID, else by `model_type`."""
    rows = _table()
    beginnings = sorted((b for b in rows["models"] if model_id.startswith(b)), key=len)
    found: dict[str, str] = (
        rows["models"][beginnings[-1]] if beginnings else rows["modelTypes"].get(model_type, {})
    )
    return found
