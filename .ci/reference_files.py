"""docs/reference/files.md: every key of the files that people write, from their JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from modelyard.spec.messages import FORMS
from modelyard.spec.schema import environment_schema, model_schema, pipeline_schema, project_schema

_FILES = {
    "models/NAME.yaml": model_schema,
    "environments/NAME.yaml": environment_schema,
    "pipeline.yaml": pipeline_schema,
    "modelyard.yaml": project_schema,
}
_HEAD = """# File reference

Written by `.ci/reference.py` from the schemas, which `modelyard schema` prints for editors. Files are YAML 1.2. A mapping
has a section of its own, further down. Where a short form is allowed, the description shows it.
"""
_LONGEST_DEFAULT = 60


def page() -> str:
    text = [_HEAD]
    for file, make in _FILES.items():
        schema = make()
        text.append(f"## {file}\n\n{_line(schema.get('description', ''))}\n")
        definitions = schema.get("$defs", {})
        text.append(_table(schema, definitions))
        for path, inner in _inner(schema):
            text.append(f"### {file.partition('/')[0].removesuffix('.yaml')}: {path}\n")
            if about := _line(inner.get("description", "")):
                text.append(f"{about}\n")
            text.append(_table(inner, definitions))
    return "\n".join(text)


def _table(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    required = schema.get("required", [])
    rows = []
    for key, each in schema["properties"].items():
        default = "required" if key in required else _default(each)
        rows.append(f"| `{key}` | {_kind(each)} | {default} | {_about(each, definitions)} |\n")
    return "| Key | Type | Default | |\n|---|---|---|---|\n" + "".join(rows)


def _inner(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and schema of every document within the file's, each once, where it is used first."""
    definitions = schema.get("$defs", {})
    seen: set[str] = set()

    def below(owner: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for key, each in owner["properties"].items():
            for name, suffix in _references(each):
                if name not in seen and "properties" in definitions[name]:
                    seen.add(name)
                    yield f"`{path}{key}{suffix}`", definitions[name]
                    yield from below(definitions[name], f"{path}{key}{suffix}.")

    yield from below(schema, "")


def _references(schema: Mapping[str, Any], suffix: str = "") -> Iterator[tuple[str, str]]:
    if "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2], suffix
    for each in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        yield from _references(each, suffix)
    if isinstance(schema.get("items"), dict):
        yield from _references(schema["items"], "[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _references(schema["additionalProperties"], ".NAME")
    for each in schema.get("patternProperties", {}).values():  # of mappings whose names have a form
        yield from _references(each, ".NAME")


def _about(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """The description of a key, or of the only document that it holds."""
    if stated := schema.get("description"):
        return _line(stated)
    names = {name for name, _ in _references(schema)}
    return _line(definitions[names.pop()].get("description", "")) if len(names) == 1 else ""


def _kind(schema: Mapping[str, Any]) -> str:
    """The type of a value in words; of text with a form, an example."""
    if "$ref" in schema:
        return "mapping"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if options := schema.get("anyOf"):
        kinds = dict.fromkeys(_kind(each) for each in options if each.get("type") != "null")
        return " or ".join(kinds)
    kind = schema.get("type", "anything")
    if kind == "array":
        items = schema.get("items", {})
        return f"list of {_kind(items)}" if isinstance(items, dict) and items else "list"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"mapping of names to {_kind(values)}" if isinstance(values, dict) and values else "mapping"
    if kind == "string":
        form = FORMS.get(str(schema.get("pattern")))
        return f"text such as `{form}`" if form else "text"
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    name = {"integer": "whole number", "number": "number", "boolean": "true or false"}.get(kind, kind)
    if low is not None and high is not None:
        return f"{name}, {low} to {high}"
    return f"{name}, from {low}" if low is not None else name


def _default(schema: Mapping[str, Any]) -> str:
    value = schema.get("default")
    if value in (None, [], {}) or (isinstance(value, dict) and "$ref" in schema):
        return ""
    text = json.dumps(value)
    return f"`{text}`" if len(text) <= _LONGEST_DEFAULT else "below"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
