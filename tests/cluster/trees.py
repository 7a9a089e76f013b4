"""The objects of an environment as a delivery engine brings them: from files, with values filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from modelyard.names import KUSTOMIZATION
from modelyard.objects.rendering import Target, target_contents
from modelyard.planning import Plan
from modelyard.project import load_project
from tests.cluster.api import Object
from tests.contract.conftest import folders_of

VALUES = {
    "modelyard_check_reports": "lab-reports",
    "modelyard_efs_access_point_id": "fsap-0123456789abcdef0",
    "modelyard_efs_file_system_id": "fs-0123456789abcdef0",
    "modelyard_lustre_dns_name": "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
    "modelyard_lustre_file_system_id": "fs-0123456789abcdef0",
    "modelyard_lustre_mount_name": "abcdefgh",
    "modelyard_prometheus_endpoint": "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-0",
    "modelyard_s3files_access_point_id": "fsap-0123456789abcdef0",
    "modelyard_s3files_file_system_id": "fs-0123456789abcdef0",
}
"""What CloudFormation knows and Flux fills in."""

_VARIABLE = re.compile(r"\$\{(modelyard_\w+)\}")

_FIRST = (
    "Namespace",
    "PriorityClass",
    "StorageClass",
    "ResourceQuota",
    "LimitRange",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
)
_LAST = (
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicyBinding",
    "DaemonSet",
    "Deployment",
    "Job",
)


@cache
def planned(name: str) -> Plan:
    """The plan of an environment of this repository, or of its fixtures."""
    found = load_project(name, *folders_of(name)).plan()
    assert found is not None
    assert found.deployable, found.findings
    return found


def rendered(plan: Plan, target: Target = "kubernetes") -> list[Object]:
    """Every object of the plan's tree, in the order in which one needs another."""
    return in_order(read(target_contents(plan, target)[0]))


def read(contents: dict[Path, str]) -> Iterable[Object]:
    """The objects in files of a tree."""
    for path, text in contents.items():
        if path.name != KUSTOMIZATION:
            yield yaml.load(filled(text), Loader=yaml.CSafeLoader)


def filled(text: str) -> str:
    """`text` with the values of this page."""
    return _VARIABLE.sub(lambda found: VALUES[found[1]], text)


def in_order(items: Iterable[Object]) -> list[Object]:
    """What pods refer to comes first, pods last: so do Flux and `kubectl apply -k`."""
    return sorted(items, key=_rank)


def _rank(item: dict[str, Any]) -> int:
    kind = item["kind"]
    if kind in _FIRST:
        return _FIRST.index(kind)
    return 100 + (_LAST.index(kind) if kind in _LAST else -1)
