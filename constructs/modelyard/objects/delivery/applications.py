"""The Argo CD Applications that apply the rendered tree from Git."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.objects.delivery.argocd import argo_application, argo_server
from modelyard.objects.manifest import Manifest
from modelyard.spec import Environment
from modelyard.spec.environment import GitRepository

# Folder to sync wave: add-ons bring the platform's CRDs, the platform the models' nodes, and checks call the
# models.
_WAVES = {"addons": -10, "monitoring": -5, "platform": -5, "models": 0, "checks": 5}


def applications(environment: Environment, git: GitRepository) -> Iterator[Manifest]:
    """One Application for each folder of the tree."""
    absent = {"monitoring": not environment.monitoring.enabled, "checks": not environment.checks.enabled}
    for folder, wave in _WAVES.items():
        if absent.get(folder):
            continue
        yield argo_application(
            name=f"modelyard-{folder}",
            source={
                "repoURL": git.url,
                "targetRevision": git.revision,
                "path": f"{git.path.strip('/')}/{environment.name}/{folder}",
            },
            wave=wave,
            server=argo_server(environment),
        )
