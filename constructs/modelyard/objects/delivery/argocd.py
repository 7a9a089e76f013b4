"""An Argo CD Application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.spec import Environment

ARGO_NAMESPACE = "argocd"
IN_CLUSTER = "https://kubernetes.default.svc"


def argo_server(environment: Environment) -> str:
    """Address of the cluster in the environment's Argo CD."""
    if environment.git is None or environment.git.managed is None:
        return IN_CLUSTER
    return f"arn:{environment.partition}:eks:{environment.region}:{environment.account}:cluster/{environment.cluster_name}"


def argo_application(
    *,
    name: str,
    source: Mapping[str, Any],  # Argo CD's `spec.source`
    destination: str | None = None,  # namespace; default: each object's own
    wave: int = 0,  # lower waves are healthy before higher ones start
    cascade: bool = False,  # whether deleting it deletes what it applied
    server: str = IN_CLUSTER,  # destination server; a managed Argo CD runs outside the cluster and takes its ARN
) -> Manifest:
    """An automatically synced Application for this cluster."""
    target = {"server": server}
    return manifest(
        api_version="argoproj.io/v1alpha1",
        kind="Application",
        name=name,
        namespace=ARGO_NAMESPACE,
        labels=platform_labels("delivery"),
        annotations={"argocd.argoproj.io/sync-wave": str(wave)},
        finalizers=["resources-finalizer.argocd.argoproj.io"] if cascade else [],
        spec={
            "project": "default",
            "source": dict(source),
            "destination": {**target, "namespace": destination} if destination else target,
            "syncPolicy": {
                "automated": {"prune": True, "selfHeal": True},
                "syncOptions": ["ServerSideApply=true", "CreateNamespace=false"],
                "retry": {"limit": 10, "backoff": {"duration": "15s", "factor": 2, "maxDuration": "5m"}},
            },
        },
    )
