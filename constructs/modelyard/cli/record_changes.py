"""What changed between two records of a checkpoint, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modelyard.reading import short
from modelyard.spec.checkpoint import CheckpointRecord

_MOST_LINES = 20
_PLAIN = ("revision", "ref", "license", "gated", "pipeline_tag", "base_model", "config_from")


def changes(before: CheckpointRecord, after: CheckpointRecord) -> list[str]:
    """A line for each field that differs, but for the date; empty if nothing does."""
    lines = list(_lines(before, after))
    left = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], *([f"and {left} more"] if left > 0 else [])]


def _lines(before: CheckpointRecord, after: CheckpointRecord) -> Iterator[str]:
    for name in _PLAIN:
        if (old := getattr(before, name)) != (new := getattr(after, name)):
            yield f"{name}: {_shown(old)} -> {_shown(new)}"
    yield from _of_objects("config", before.config, after.config)
    yield from _of_objects("generationConfig", before.generation_config or {}, after.generation_config or {})
    yield from _of_objects("tensors", before.tensors or {}, after.tensors or {})
    for file in sorted({*before.files, *after.files}):
        old_file, new_file = before.files.get(file), after.files.get(file)
        if old_file is None or new_file is None:
            yield f"files.{file}: {'added' if new_file else 'removed'}"
        else:
            yield from _of_objects(f"files.{file}", old_file.tensors, new_file.tensors)


def _of_objects(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*old, *new}):
        if key not in new:
            yield f"{name}.{short(key, 80)}: removed"
        elif key not in old:
            yield f"{name}.{short(key, 80)}: added, {_shown(new[key])}"
        elif old[key] != new[key]:
            yield f"{name}.{short(key, 80)}: {_shown(old[key])} -> {_shown(new[key])}"


def _shown(value: object) -> str:
    return "none" if value in (None, ()) else short(str(value))
