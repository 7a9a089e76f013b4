"""The rendered tree: one object a file, sorted keys, the same bytes every time."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdk8s import Chart
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString, SingleQuotedScalarString

KUSTOMIZATION = "kustomization.yaml"

# Kubernetes' own reader speaks YAML 1.1: without quotes these words are truths there, and 1:30 is ninety.
_NOT_TEXT = re.compile(r"y|n|yes|no|on|off|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Rendering:
    """What a tree holds now, and what changed in it; paths relative to its root."""

    files: tuple[Path, ...]
    changed: tuple[Path, ...]
    removed: tuple[Path, ...]


def objects_of(chart: Chart) -> list[dict[str, Any]]:
    """The chart's objects as plain data."""
    return [dict(item) for item in chart.to_json()]


def write_tree(root: Path, folders: Mapping[str, Iterable[dict[str, Any]]]) -> Rendering:
    """Write `folders` (path below `root` to objects) and a kustomization in every folder, as `write_files` does."""
    return write_files(root, tree_contents(folders))


def write_files(root: Path, content: Mapping[Path, str]) -> Rendering:
    """Write texts to their paths below `root`.

    Files of an earlier rendering that nothing needs now are removed; unchanged ones are not touched.
    """
    before = {path.relative_to(root) for path in root.rglob("*.yaml")} if root.exists() else set()
    changed = []
    for path, text in content.items():
        target = root / path
        if path in before and target.read_text(encoding="utf-8") == text:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        changed.append(path)
    removed = sorted(before - set(content))
    for path in removed:
        (root / path).unlink()
    for folder in sorted((p for p in root.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    return Rendering(tuple(content), tuple(changed), tuple(removed))


def tree_contents(folders: Mapping[str, Iterable[dict[str, Any]]]) -> dict[Path, str]:
    """Path to text: one object a file, and a kustomization in every folder."""
    content: dict[Path, str] = {}
    resources: dict[Path, list[str]] = {Path("."): []}
    for folder, objects in sorted(folders.items()):
        path = Path(folder)
        resources.setdefault(path, [])
        for parent in (path, *path.parents):
            if parent != Path("."):
                siblings = resources.setdefault(parent.parent, [])
                if parent.name not in siblings:
                    siblings.append(parent.name)
        for item in objects:
            name = _file_name(item)
            file = path / name
            if file in content:
                raise ValueError(f"two objects would be written to {file}")
            content[file] = to_yaml(item)
            resources[path].append(name)
    for folder_path, names in resources.items():
        content[folder_path / KUSTOMIZATION] = to_yaml(
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "resources": sorted(names),
            }
        )
    return dict(sorted(content.items()))


def _file_name(item: dict[str, Any]) -> str:
    return f"{item['kind'].lower()}-{item['metadata']['name']}.yaml"


def to_yaml(item: dict[str, Any]) -> str:
    """YAML 1.2 with sorted keys and readable blocks for texts of several lines."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(_sorted(item), stream)
    return stream.getvalue()


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_sorted(key): _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    if isinstance(value, str) and "\n" in value:
        return LiteralScalarString(value)
    if isinstance(value, str) and _NOT_TEXT.fullmatch(value):
        return SingleQuotedScalarString(value)
    if isinstance(value, float) and value.is_integer():  # jsii hands every number back as a float
        return int(value)
    return value
