"""Which tool-call and reasoning parser a model family needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML


@dataclass(frozen=True)
class Parsers:
    """Names for `--tool-call-parser` and `--reasoning-parser`; None where the family has none."""

    tools: str | None = None
    reasoning: str | None = None


@cache
def _table() -> dict[str, Any]:
    text = files("modelyard.engines").joinpath("data", "parsers.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return table


def parsers_for(model_id: str, model_type: str, engine: str = "vllm") -> Parsers:
    """The parsers of a model, by the longest matching beginning of its id, else by its `model_type`.

    SGLang and llama-server read them off the chat template; Triton's frontend has names of its own.
    """
    if engine in ("sglang", "llama-server"):
        return Parsers("auto", "auto")
    rows = _table()
    beginnings = sorted((b for b in rows["models"] if model_id.startswith(b)), key=len)
    row = rows["models"][beginnings[-1]] if beginnings else rows["modelTypes"].get(model_type, {})
    if engine.startswith("triton"):
        return Parsers(tools=rows["triton"].get(row.get("tools")))
    return Parsers(tools=row.get("tools"), reasoning=row.get("reasoning"))
