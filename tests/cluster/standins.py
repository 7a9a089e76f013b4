"""Definitions without a schema, for kinds whose charts are not installed: their objects are stored as they
are."""

from __future__ import annotations

from collections.abc import Iterable

from tests.cluster.api import Object

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def stand_ins(items: Iterable[Object], known: set[tuple[str, str]]) -> list[Object]:
    """A definition for every kind of `items` that is not `known`."""
    kinds: dict[tuple[str, str], bool] = {}
    for item in items:
        kind = item["apiVersion"], item["kind"]
        if kind not in known:
            kinds[kind] = kinds.get(kind, False) or "namespace" in item["metadata"]
    return [_definition(*kind, namespaced=namespaced) for kind, namespaced in sorted(kinds.items())]


def _definition(api: str, kind: str, *, namespaced: bool) -> Object:
    group, _, version = api.partition("/")
    singular = kind.lower()
    plural = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": singular},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _ANYTHING},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
