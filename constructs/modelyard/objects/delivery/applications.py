"""The Argo CD Applications that apply the rendered tree from Git."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from modelyard.names import CHECKS_FOLDER, MODELS_FOLDER
from modelyard.objects.delivery.argocd import argo_application, argo_server
from modelyard.objects.delivery.kustomizations import delivered_parts
from modelyard.objects.manifest import Manifest
from modelyard.spec import Environment
from modelyard.spec.environment import GitRepository

# Folder to sync wave: add-ons bring the platform's CRDs, the platform the models' nodes, and checks call the
# models.
_PLATFORM_WAVE = -5
_WAVES = {
    "addons": -10,
    "monitoring": _PLATFORM_WAVE,
    "platform": _PLATFORM_WAVE,
    MODELS_FOLDER: 0,
    CHECKS_FOLDER: 5,
}


def applications(
    environment: Environment, git: GitRepository, folders: Collection[str]
) -> Iterator[Manifest]:
    """An Application for each folder of the platform, for each model, and for each model's checks: a sync
    that fails holds back no other model.

    Args:
        folders: Folders of the tree that have objects.
    """
    shared = [folder for folder in ("addons", "monitoring", "platform") if folder in folders]
    parts = {folder: folder for folder in shared} | delivered_parts(folders)
    for name, folder in parts.items():
        yield argo_application(
            name=f"modelyard-{name}",
            source={
                "repoURL": git.url,
                "targetRevision": git.revision,
                "path": f"{git.path.strip('/')}/{environment.name}/{folder}",
            },
            wave=_WAVES.get(folder.partition("/")[0], _PLATFORM_WAVE),
            server=argo_server(environment),
            # A model that leaves the tree takes its Application with it, which would leave its pods running.
            cascade=folder not in shared,
        )
