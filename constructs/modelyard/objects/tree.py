"""The rendered tree: one object a file, sorted keys, the same bytes every time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from modelyard.names import KUSTOMIZATION
from modelyard.objects.manifest import file_name
from modelyard.objects.yaml_text import to_yaml
from modelyard.writing import Rendering, write_tree_files


def write_tree(
    root: Path, folders: Mapping[str, Iterable[dict[str, Any]]], *, overwrite: bool = False
) -> Rendering:
    """Write `folders` (path below `root` to objects) and a kustomization in every folder, as
    `write_tree_files` does.

    Raises:
        NotWritten: something of somebody else would be lost, or the tree cannot be written.
    """
    return write_tree_files(root, tree_contents(folders), overwrite=overwrite)


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
            name = file_name(item)
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
