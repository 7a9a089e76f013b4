"""The states of Flux' objects as metrics. Flux' controllers export none any more: kube-state-metrics reads
them, with the name and the labels of Flux' own example (flux2-monitoring-example), whose dashboards work.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from modelyard.spec import Environment

_KINDS: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        # kind to group, version and resource
        "Bucket": ("source.toolkit.fluxcd.io", "v1", "buckets"),
        "GitRepository": ("source.toolkit.fluxcd.io", "v1", "gitrepositories"),
        "HelmChart": ("source.toolkit.fluxcd.io", "v1", "helmcharts"),
        "HelmRelease": ("helm.toolkit.fluxcd.io", "v2", "helmreleases"),
        "HelmRepository": ("source.toolkit.fluxcd.io", "v1", "helmrepositories"),
        "Kustomization": ("kustomize.toolkit.fluxcd.io", "v1", "kustomizations"),
    }
)
_READY: Final = ("status", "conditions", "[type=Ready]")


def flux_states(environment: Environment) -> dict[str, Any]:
    """Values of kube-prometheus-stack for its kube-state-metrics; none where Flux delivers nothing."""
    if environment.delivery != "flux":
        return {}
    groups: dict[str, list[str]] = {}
    for group, _, resource in _KINDS.values():
        groups.setdefault(group, []).append(resource)
    return {
        "kube-state-metrics": {
            "rbac": {
                "extraRules": [
                    {"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]}
                    for group, resources in sorted(groups.items())
                ]
            },
            "customResourceState": {
                "enabled": True,
                "config": {
                    "spec": {
                        "resources": [_resource(kind, *found[:2]) for kind, found in _KINDS.items()],
                    }
                },
            },
        }
    }


def _resource(kind: str, group: str, version: str) -> dict[str, Any]:
    return {
        "groupVersionKind": {"group": group, "version": version, "kind": kind},
        "metricNamePrefix": "gotk",
        "metrics": [
            {
                "name": "resource_info",
                "help": "The current state of an object of Flux.",
                "each": {"type": "Info", "info": {"labelsFromPath": {"name": ["metadata", "name"]}}},
                "labelsFromPath": {
                    "exported_namespace": ["metadata", "namespace"],
                    "ready": [*_READY, "status"],
                    "reason": [*_READY, "reason"],
                    "suspended": ["spec", "suspend"],
                },
            }
        ],
    }
