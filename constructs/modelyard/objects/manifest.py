"""One Kubernetes object as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Manifest = dict[str, Any]


def manifest(
    *,
    api_version: str,
    kind: str,
    name: str,
    namespace: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    **body: Any,
) -> Manifest:
    """An object; `body` holds the other top-level fields, such as `spec`, under Kubernetes' names.

    Names are explicit, because other objects and people refer to them.
    """
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
        "finalizers": list(finalizers),
    }
    stated = {key: value for key, value in metadata.items() if value}
    return {"apiVersion": api_version, "kind": kind, "metadata": stated, **body}


def file_name(item: Manifest) -> str:
    """The object's file in its folder: no two objects of a folder have the same."""
    return f"{item['kind'].lower()}-{item['metadata']['name']}.yaml"
