"""Definitions that no chart carries: a folder of a project's repository at a tag, applied as it is."""

from __future__ import annotations

from typing import Literal

from constructs import Construct

from modelyard.k8s.argocd import IN_CLUSTER, ArgoApplication
from modelyard.k8s.helm_addon import FLUX_NAMESPACE
from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest


class GitAddon(Construct):
    """A Flux GitRepository with its Kustomization, or an Argo CD Application."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        engine: Literal["flux", "argocd"],
        name: str,
        url: str,
        tag: str,
        path: str,
        server: str = IN_CLUSTER,  # for Argo CD
    ) -> None:
        super().__init__(scope, construct_id)
        if engine == "argocd":
            source = {"repoURL": url, "targetRevision": tag, "path": path}
            ArgoApplication(self, "Application", name=name, source=source, wave=-6, server=server)
            return
        labels = platform_labels("add-on")
        manifest(
            self,
            "Repository",
            api_version="source.toolkit.fluxcd.io/v1",
            kind="GitRepository",
            name=name,
            namespace=FLUX_NAMESPACE,
            labels=labels,
            spec={"interval": "24h", "url": url, "ref": {"tag": tag}},
        )
        manifest(
            self,
            "Kustomization",
            api_version="kustomize.toolkit.fluxcd.io/v1",
            kind="Kustomization",
            name=name,
            namespace=FLUX_NAMESPACE,
            labels=labels,
            spec={
                "interval": "1h",
                "path": f"./{path}",
                # Definitions that go take every object of their kind with them.
                "prune": False,
                "sourceRef": {"kind": "GitRepository", "name": name},
                "wait": True,
            },
        )
