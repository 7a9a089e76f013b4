"""Settings of the schemas, and a change of each: setting_changes.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from modelyard.spec.schema import environment_schema, model_schema
from tests.unit.given import yaml_data

File = Literal["model", "environment"]
CHANGES = Path(__file__).with_name("setting_changes.yaml")


@dataclass(frozen=True)
class Change:
    """A setting with a value, and with another one; everything else is the same.

    `environment`: what the environment of a changed model, or `model`: what the model in a changed
    environment needs besides.
    """

    file: File
    key: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    other: Mapping[str, Any]
    says: str = ""
    """What the change does, where that cannot be computed."""
    way_out: str = ""
    """How it is made where the API server refuses it."""


def changes() -> list[Change]:
    """All changes, by file and in the order of the schema."""
    found = []
    data, files = yaml_data(CHANGES), get_args(File)
    for file in files:
        for key, row in data[file].items():
            common = row.get("with", {})
            before, after = (common | row.get(side, {}) for side in ("before", "after"))
            found.append(
                Change(
                    file, key, before, after, row.get("other", {}), row.get("says", ""), row.get("wayOut", "")
                )
            )
    order = {(file, key): place for file in files for place, key in enumerate(keys(file))}
    return sorted(found, key=lambda change: order.get((change.file, change.key), len(order)))


def keys(file: File) -> list[str]:
    """Every key of a schema that has no keys below it, such as `replicas.min`; `*` stands for a name that
    the user chose, and `[]` for an item of a list."""
    schema = model_schema() if file == "model" else environment_schema()
    found = list(dict.fromkeys(_below(schema, schema.get("$defs", {}), ())))
    return [
        ".".join(path)
        for path in found
        # An override does what the same key of the model's file does.
        if path[:2] != ("overrides", "*")
        and not any(other[: len(path)] == path and len(other) > len(path) for other in found)
    ]


def _below(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    schema = _resolved(schema, definitions)
    if path:
        yield path
    for each in (schema, *(_resolved(other, definitions) for other in schema.get("anyOf", []))):
        for key, inner in each.get("properties", {}).items():
            yield from _below(inner, definitions, (*path, key))
        named = [each.get("additionalProperties"), *each.get("patternProperties", {}).values()]
        for inner, step in (*((value, "*") for value in named), (each.get("items"), "[]")):
            if isinstance(inner, Mapping) and "properties" in _resolved(inner, definitions):
                yield from _below(inner, definitions, (*path, step))


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return definitions[name] if name else schema
