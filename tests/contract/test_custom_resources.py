"""Every custom resource against its project's CRDs, including CEL rules, if the CRDs are on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from modelyard.object_rules.api_schemas import is_custom
from modelyard.object_rules.definitions import Schema, complaints, definitions
from tests.contract.conftest import SHIPPED, Tree
from tests.contract.custom_resource_mistakes import MISTAKES

KINDS = [
    ("argoproj.io/v1alpha1", "Application"),
    ("external-secrets.io/v1", "ClusterSecretStore"),
    ("external-secrets.io/v1", "ExternalSecret"),
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
    ("karpenter.k8s.aws/v1", "EC2NodeClass"),
    ("karpenter.sh/v1", "NodePool"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("monitoring.coreos.com/v1", "PodMonitor"),
    ("monitoring.coreos.com/v1", "PrometheusRule"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
    ("source.toolkit.fluxcd.io/v1", "HelmRepository"),
]


@pytest.fixture(scope="session")
def every(tree: Callable[[str], Tree]) -> list[dict[str, Any]]:
    return [item for name in (*SHIPPED, "argocd") for item in tree(name).objects]


def schema_of(api_version: str, kind: str) -> Schema:
    where = os.environ.get("MODELYARD_CRDS")
    if not where:
        pytest.skip(f"{kind} of {api_version} is not checked: MODELYARD_CRDS names no folder of CRDs")
    schema = definitions(Path(where)).get((api_version, kind))
    if schema is None:
        pytest.skip(f"{kind} of {api_version} is not checked: there is no CRD of it in MODELYARD_CRDS")
    return schema


def test_no_kind_is_forgotten(every: list[dict[str, Any]]) -> None:
    assert {(item["apiVersion"], item["kind"]) for item in every if is_custom(item)} == set(KINDS)


@pytest.mark.parametrize(("api_version", "kind"), KINDS)
def test_every_custom_resource_is_valid(every: list[dict[str, Any]], api_version: str, kind: str) -> None:
    schema = schema_of(api_version, kind)

    items = [item for item in every if (item["apiVersion"], item["kind"]) == (api_version, kind)]
    assert items
    assert [(i["metadata"]["name"], found) for i in items if (found := complaints(i, schema))] == []


def _set(item: dict[str, Any], path: tuple[Any, ...], value: object) -> dict[str, Any]:
    changed = deepcopy(item)
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


@pytest.mark.parametrize(("kind", "path", "value", "complaint"), MISTAKES)
def test_a_planted_mistake_is_refused(
    every: list[dict[str, Any]], kind: str, path: tuple[Any, ...], value: object, complaint: str
) -> None:
    item = next(item for item in every if item["kind"] == kind)

    found = complaints(_set(item, path, value), schema_of(item["apiVersion"], kind))

    assert any(complaint in one for one in found), found
