"""An Argo CD Application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constructs import Construct

from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest

ARGO_NAMESPACE = "argocd"


class ArgoApplication(Construct):
    """An automatically synchronised Application into this cluster."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        source: Mapping[str, Any],  # Argo CD's `spec.source`
        destination: str | None = None,  # namespace; default: each object's own
        wave: int = 0,  # lower waves are healthy before higher ones start
    ) -> None:
        super().__init__(scope, construct_id)
        target = {"server": "https://kubernetes.default.svc"}
        manifest(
            self,
            "Application",
            api_version="argoproj.io/v1alpha1",
            kind="Application",
            name=name,
            namespace=ARGO_NAMESPACE,
            labels=platform_labels("delivery"),
            annotations={"argocd.argoproj.io/sync-wave": str(wave)},
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
