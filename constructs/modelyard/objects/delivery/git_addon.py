"""CRDs that no chart carries: a folder of a project's repository at a tag, applied unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from modelyard.names import FLUX_NAMESPACE
from modelyard.objects.delivery.argocd import IN_CLUSTER, argo_application
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest


def git_addon(
    *,
    engine: Literal["flux", "argocd"],
    name: str,
    url: str,
    tag: str,
    path: str,
    server: str = IN_CLUSTER,  # for Argo CD
) -> Iterator[Manifest]:
    """A Flux GitRepository with its Kustomization, or an Argo CD Application."""
    if engine == "argocd":
        source = {"repoURL": url, "targetRevision": tag, "path": path}
        yield argo_application(name=name, source=source, wave=-6, server=server)
        return
    labels = platform_labels("add-on")
    yield manifest(
        api_version="source.toolkit.fluxcd.io/v1",
        kind="GitRepository",
        name=name,
        namespace=FLUX_NAMESPACE,
        labels=labels,
        spec={"interval": "24h", "url": url, "ref": {"tag": tag}},
    )
    yield manifest(
        api_version="kustomize.toolkit.fluxcd.io/v1",
        kind="Kustomization",
        name=name,
        namespace=FLUX_NAMESPACE,
        labels=labels,
        spec={
            "interval": "1h",
            "path": f"./{path}",
            # Deleting a CRD deletes every object of its kind.
            "prune": False,
            "sourceRef": {"kind": "GitRepository", "name": name},
            "wait": True,
        },
    )
