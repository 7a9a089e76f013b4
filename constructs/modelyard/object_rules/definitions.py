"""CustomResourceDefinitions as validators: their structural schemas, and their CEL rules.

Not checked: transition rules (`oldSelf`), rules with functions that the CEL library lacks, and formats. Needs
the extra `modelyard[crds]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cel
import jsonschema  # type: ignore[import-untyped]
import yaml  # type: ignore[import-untyped]
from packaging.version import Version

from modelyard.findings import Finding
from modelyard.object_rules.api_schemas import is_custom
from modelyard.reading import DEFINITIONS, read_file, short

Schema = dict[str, Any]


class UnreadableDefinitions(Exception):
    """A file holds no usable CRDs; the text names the file and the reason."""


@dataclass(frozen=True)
class DefinitionCheck:
    """Result of the check; `unknown` lists the kinds without a definition."""

    findings: tuple[Finding, ...]
    unknown: tuple[str, ...]


def check_definitions(items: Iterable[Mapping[str, Any]], folder: Path) -> DefinitionCheck:
    """Check every custom resource among `items` against the CustomResourceDefinitions below `folder`.

    `folder` holds YAML files as projects publish them, or the output of `kubectl get crds -o yaml`.

    Raises:
        UnreadableDefinitions: a file is too large, or the API server would reject it.
    """
    known = definitions(folder)
    findings: list[Finding] = []
    unknown: set[str] = set()
    for item in items:
        if not is_custom(item):
            continue
        schema = known.get((item["apiVersion"], item["kind"]))
        if schema is None:
            unknown.add(f"{item['kind']} ({item['apiVersion']})")
            continue
        try:
            findings += [_finding(item, complaint) for complaint in complaints(item, schema)]
        except UnreadableDefinitions as problem:
            kind = f"{item['kind']} ({item['apiVersion']})"
            raise UnreadableDefinitions(f"{folder}: the schema of {kind} is none: {problem}") from None
    return DefinitionCheck(tuple(findings), tuple(sorted(unknown)))


def _finding(item: Mapping[str, Any], complaint: str) -> Finding:
    return Finding(
        "K8S002",
        f"{item['kind']} {item['metadata']['name']}: {complaint}",
        "use the definitions of the releases that the cluster runs, or correct the patch",
        subject=item["metadata"].get("labels", {}).get("app.kubernetes.io/instance", ""),
    )


def _age(path: Path) -> Version:
    """Sort key of folders such as `karpenter-v1.14.1`: by version; a folder without a version comes first."""
    match = re.search(r"-v(\d+(?:\.\d+)*)", path.parent.name)
    return Version(match[1]) if match else Version("0.dev0")


@cache
def definitions(where: Path) -> Mapping[tuple[str, str], Schema]:
    """(apiVersion, kind) to the schema of each served version; the newest folder wins.

    Raises:
        UnreadableDefinitions: a file is too large, or the API server would reject it.
    """
    found: dict[tuple[str, str], Schema] = {}
    for path in sorted(where.rglob("*.yaml"), key=lambda p: (_age(p), p)):
        text = read_file(path, DEFINITIONS)
        if isinstance(text, Finding):
            raise UnreadableDefinitions(str(text))
        if "kind: CustomResourceDefinition" in text:
            try:
                found.update(read_definitions(text))
            except UnreadableDefinitions as problem:
                raise UnreadableDefinitions(f"{path}: {problem}") from None
    return found


MOST_ENTRIES = 1_000_000
"""Maximum lines and commas per file: each can be an entry of half a KiB. 10 MiB from kubectl have 350,000."""
MOST_DEPTH = 128
"""Maximum nesting of mappings and lists; pod templates in CRDs reach 60."""
_STRANGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions from reading data of an unexpected shape."""


def read_definitions(text: str) -> dict[tuple[str, str], Schema]:
    """The schemas in the YAML documents of `text`.

    Raises:
        UnreadableDefinitions: the API server would reject them.
    """
    if sum(map(text.count, "\n,[{")) > MOST_ENTRIES:
        raise UnreadableDefinitions(f"more than {MOST_ENTRIES:,} entries")
    found: dict[tuple[str, str], Schema] = {}
    try:
        _refuse_strange_shapes(text)
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            for definition in _definitions_in(document):
                spec = definition["spec"]
                for version in spec["versions"]:
                    if version["served"]:
                        key = (f"{spec['group']}/{version['name']}", str(spec["names"]["kind"]))
                        schema = version["schema"]["openAPIV3Schema"]
                        if not isinstance(schema, dict):
                            raise TypeError(f"the schema of {short(key[1])} is no object")
                        found[key] = schema
    except (yaml.YAMLError, *_STRANGE) as problem:
        raise UnreadableDefinitions(f"no definitions that the API server takes: {_said(problem)}") from None
    return found


def _refuse_strange_shapes(text: str) -> None:
    """Refuses extreme nesting and aliases: libyaml's loader crashes the process on thousands of levels, and
    aliases can expand without end.

    The parser yields events and keeps its state in a list, so events are checked before loading.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                raise ValueError(f"more than {MOST_DEPTH} mappings and lists within one another")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            raise ValueError(f"alias *{short(event.anchor)}; definitions have none")


def _said(problem: Exception) -> str:
    return short(" ".join(str(problem).split()) or type(problem).__name__, 200)


def _definitions_in(document: Any) -> list[Any]:
    """The document itself, or the items of a List from kubectl."""
    items = document.get("items", [document]) if isinstance(document, dict) else []
    return [item for item in items if item.get("kind") == "CustomResourceDefinition"]


def complaints(item: Mapping[str, Any], schema: Schema) -> list[str]:
    """Every reason why the API server would reject `item`.

    Raises:
        UnreadableDefinitions: `schema` is not a structural schema.
    """
    try:
        return _complaints(item, schema)
    except (jsonschema.exceptions.UnknownType, *_STRANGE) as problem:
        raise UnreadableDefinitions(_said(problem)) from None


def _complaints(item: Mapping[str, Any], schema: Schema) -> list[str]:
    closed = _closed(schema) | {"additionalProperties": False}
    closed["properties"] = {
        "apiVersion": {},
        "kind": {},
        **closed["properties"],
        "metadata": {"type": "object"},
    }
    validator = jsonschema.Draft202012Validator(closed)
    filled = _defaulted(item, schema)
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(filled)]
    return errors or list(_broken_rules(filled, schema, "$"))


def _closed(schema: Any) -> Any:
    """A structural schema as JSON Schema that refuses unknown fields."""
    if not isinstance(schema, dict):
        return schema
    result = {
        key: value for key, value in schema.items() if not key.startswith(("x-", "$")) and key != "format"
    }
    for key in ("items", "additionalProperties"):
        if key in result:
            result[key] = _closed(result[key])
    if "properties" in result:
        result["properties"] = {name: _closed(inner) for name, inner in result["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            result.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        result |= {"type": ["integer", "string"]}
    if result.pop("nullable", False) and "type" in result:
        result["type"] = [*([result["type"]] if isinstance(result["type"], str) else result["type"]), "null"]
    return result


def _defaulted(value: Any, schema: Schema) -> Any:
    """`value` with the schema's defaults, which the API server fills in before it validates: for fields that
    are absent, and for those that are null without being nullable."""
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        defaults = {name: s["default"] for name, s in inner.items() if "default" in s}
        stated = {
            key: one
            for key, one in value.items()
            if one is not None or key not in defaults or inner[key].get("nullable")
        }
        filled = defaults | stated
        other = schema.get("additionalProperties")
        rest = other if isinstance(other, dict) else {}
        return {key: _defaulted(one, inner.get(key, rest)) for key, one in filled.items()}
    if isinstance(value, list):
        return [_defaulted(one, schema.get("items", {})) for one in value]
    return value


def _find(text: str, pattern: str) -> str:
    match = re.search(pattern, text)
    return match[0] if match else ""


def _holds(rule: str, value: Any) -> bool:
    """Whether `rule` holds for `value`; true if the library cannot evaluate the rule."""
    context = cel.Context(variables={"self": value})
    # Kubernetes' CEL extensions.
    context.add_function("find", _find)
    context.add_function("split", lambda text, separator: text.split(separator))
    try:
        return bool(cel.evaluate(rule, context))
    except KeyError:  # a missing field: the API server rejects the object
        return False
    except (RuntimeError, TypeError, ValueError):
        return True


def _broken_rules(value: Any, schema: Schema, path: str) -> Iterator[str]:
    for entry in schema.get("x-kubernetes-validations", []):
        if "oldSelf" not in entry["rule"] and not _holds(entry["rule"], value):
            yield f"{path}: {entry.get('message', entry['rule'])}"
    if isinstance(value, dict):
        other = schema.get("additionalProperties")
        for key, inner in value.items():
            known = schema.get("properties", {}).get(key, other)
            if isinstance(known, dict):
                yield from _broken_rules(inner, known, f"{path}.{key}")
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _broken_rules(inner, schema.get("items", {}), f"{path}[{position}]")
