"""Bundled architectures: configs of published checkpoints, each with its source and date."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from modelyard.checkpoints.config import read_config
from modelyard.checkpoints.shape import Architecture


class _Table(Mapping[str, Architecture]):
    """Architectures by Hugging Face ID, parsed on first access."""

    def __init__(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        self._rows = rows
        self._read: dict[str, Architecture] = {}
        self._ids = {model_id.lower(): model_id for model_id in rows}

    def __getitem__(self, model_id: str) -> Architecture:
        if model_id not in self._read:
            self._read[model_id] = self._architecture(model_id, self._rows[model_id])
        return self._read[model_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, model_id: object) -> bool:
        return model_id in self._rows

    def repositories(self) -> tuple[str, ...]:
        """IDs of Hugging Face repositories; other rows are checkpoints that only measurements refer to."""
        return tuple(name for name, row in self._rows.items() if row.get("repository", True))

    def called(self, name: str) -> str | None:
        """Case-insensitive lookup of an ID, as on Hugging Face; None if there is no match."""
        return self._ids.get(name.lower())

    def config(self, model_id: str) -> dict[str, Any]:
        """The `config.json` of `model_id`: its own fields, merged over those of the checkpoint it derives
        from."""
        row = self._rows[model_id]
        base = self.config(row["like"]) if "like" in row else {}
        return {**base, **row.get("config", {})}

    def _architecture(self, model_id: str, row: Mapping[str, Any]) -> Architecture:
        return replace(
            read_config(self.config(model_id), model_id=model_id),
            gated=row.get("gated", False),
            published_parameters=row.get("publishedParametersB", 0) * 1e9,
            source=row["source"],
        )


@cache
def architectures() -> _Table:
    """Every known architecture by Hugging Face ID."""
    text = files("modelyard.checkpoints").joinpath("data", "architectures.json").read_text(encoding="utf-8")
    return _Table(json.loads(text)["models"])
