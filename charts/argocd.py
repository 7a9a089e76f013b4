"""Chart of the Argo CD Applications that apply the rendered tree from Git."""

from __future__ import annotations

from cdk8s import Chart
from constructs import Construct

from modelyard.k8s import ArgoApplication
from modelyard.k8s.argocd import argo_server
from modelyard.spec import Environment
from modelyard.spec.environment import GitRepository

# Folder to sync wave: add-ons bring the definitions that the platform needs, and it the nodes for the models, which the
# checks ask.
_WAVES = {"addons": -10, "monitoring": -5, "platform": -5, "models": 0, "checks": 5}


class ArgoChart(Chart):
    def __init__(
        self, scope: Construct, construct_id: str, *, environment: Environment, git: GitRepository
    ) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        for folder, wave in _WAVES.items():
            absent = {
                "monitoring": not environment.monitoring.enabled,
                "checks": not environment.checks.enabled,
            }
            if absent.get(folder):
                continue
            ArgoApplication(
                self,
                folder.capitalize(),
                name=f"modelyard-{folder}",
                source={
                    "repoURL": git.url,
                    "targetRevision": git.revision,
                    "path": f"{git.path.strip('/')}/{environment.name}/{folder}",
                },
                wave=wave,
                server=argo_server(environment),
            )
