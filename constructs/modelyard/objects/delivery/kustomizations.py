"""Flux's Kustomizations. Each model has one, and so have its weights and its checks: none waits for another
model.

A Kustomization waits until its objects are healthy, and those that depend on it wait with it. In one for
all models, a Job that fails, or an object that the API server refuses, would hold back the others and their
checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from modelyard.names import CHECKS_FOLDER, FLUX_NAMESPACE, MODELS_FOLDER, REPORTS_VARIABLE, WEIGHTS_FOLDER
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.planning import Plan

FLUX_SOURCE: Final = "modelyard"
"""Name of the Bucket that holds the tree."""

FLUX_WORKERS: Final = 250
"""How many Kustomizations Flux works on at a time. One that waits for its objects keeps its worker: with the
controller's default of four, four models that start would hold back every other one.

Measured with kustomize-controller 1.9.4 on Kubernetes 1.36.3, all models of a new tree starting and none
ready: of 60 models, four workers applied 4 and 100 all of them, in 61 s and 195 MiB; of 200 models, 250
workers applied all, in 181 s, 297 MiB, and 0.28 CPU cores from then on.
"""

DELIVERY: Final = "delivery"
"""Folder of the tree with the Kustomizations of this module, and the Kustomization that applies it."""

FOLDER_MINUTES: Final = {
    "addons": 15,
    "platform": 10,
    WEIGHTS_FOLDER: 60,
    MODELS_FOLDER: 60,
    CHECKS_FOLDER: 60,
}
"""How many minutes Flux waits for objects of a folder before it says that they are not healthy, and tries
again; in the order in which one waits for another."""

_OF_THE_STACK: Final = frozenset({"addons", "platform", "monitoring", "argocd"})
"""Folders that Flux knows from its own release, or does not apply."""


@dataclass(frozen=True)
class Dependency:
    """A Kustomization that must be ready first."""

    name: str
    once: bool = False
    """Whether any revision will do: it has brought the CRDs or the namespace, and what breaks in it later
    does not stop a model's rollback. Otherwise it must be ready at the same revision."""

    def manifest(self) -> dict[str, str]:
        # Set when all objects were healthy, and never cleared (kustomize-controller 1.8, reconcile).
        expression = {"readyExpr": "has(dep.status.lastAppliedRevision)"} if self.once else {}
        return {"name": self.name, **expression}


PLATFORM: Final = Dependency("platform", once=True)


def flux_kustomization(
    name: str,
    *,
    path: str,
    minutes: int,
    after: Sequence[Dependency] = (),
    wait: bool = True,
    substitutions: Mapping[str, str] | None = None,
) -> Manifest:
    """A Kustomization of the tree's folder `path`.

    Args:
        minutes: How long its objects may take to become healthy.
        after: What must be ready first.
        wait: Whether it is ready once its objects are healthy, or as soon as they are applied.
        substitutions: Values for `${NAME}` in the folder; with any, an unknown `${NAME}` is an error.
    """
    spec: dict[str, Any] = {
        "sourceRef": {"kind": "Bucket", "name": FLUX_SOURCE},
        "path": f"./{path}",
        "interval": "10m",
        "retryInterval": "1m",
        "timeout": f"{minutes}m",
        "wait": wait,
        "prune": True,
        # Deleting one of these by hand deletes its objects and waits, so that Karpenter can still drain its
        # nodes.
        "deletionPolicy": "WaitForTermination",
    }
    if after:
        spec["dependsOn"] = [each.manifest() for each in after]
    if substitutions:
        spec["postBuild"] = {"substitute": dict(substitutions)}
    return manifest(
        api_version="kustomize.toolkit.fluxcd.io/v1",
        kind="Kustomization",
        name=name,
        namespace=FLUX_NAMESPACE,
        labels=platform_labels("delivery"),
        spec=spec,
    )


def delivered_parts(folders: Collection[str]) -> dict[str, str]:
    """Name to folder of what is delivered by itself: `model-NAME`, `check-NAME`, and each folder that a
    chart of the user's added.

    Shared folders, such as `models/_litellm`, are called `models-litellm`: no model has such a name.
    """
    parts = {}
    for folder in sorted(folders):
        top, _, rest = folder.partition("/")
        if top in _OF_THE_STACK:
            continue
        if top not in (MODELS_FOLDER, CHECKS_FOLDER):
            parts[top] = top
            continue
        name = rest.partition("/")[0]
        prefix = f"{top}-" if name.startswith("_") else f"{top.removesuffix('s')}-"
        parts[prefix + name.removeprefix("_")] = f"{top}/{name}"
    return parts


def kustomizations(
    plan: Plan, folders: Collection[str], weights: Mapping[str, Sequence[str]]
) -> Iterator[Manifest]:
    """The Kustomizations of folder `delivery`.

    Args:
        folders: Folders of the tree that have objects.
        weights: Model to the folders of the Jobs that fetch its weights, which may be shared.
    """
    parts = delivered_parts(folders)
    # A batch without a schedule takes hours, and nothing comes after it.
    once = {each.model.name for each in plan.models if each.model.batch and not each.model.batch.schedule}
    for name, folder in parts.items():
        if folder == WEIGHTS_FOLDER:
            for job in sorted(each for each in folders if each.startswith(f"{WEIGHTS_FOLDER}/")):
                yield _fetch(job)
        elif folder.startswith(f"{CHECKS_FOLDER}/"):
            yield _check(name, folder, parts, reports=plan.environment.reports_checks)
        else:
            model = folder.removeprefix(f"{MODELS_FOLDER}/")
            fetches = [each for each in weights.get(model, ()) if each in folders]
            yield flux_kustomization(
                name,
                path=folder,
                minutes=FOLDER_MINUTES[MODELS_FOLDER],
                # A GPU node that waits for a download costs as much as one that serves.
                after=[PLATFORM, *(Dependency(_last(each)) for each in fetches)],
                wait=model not in once,
            )


def _fetch(folder: str) -> Manifest:
    return flux_kustomization(
        _last(folder), path=folder, minutes=FOLDER_MINUTES[WEIGHTS_FOLDER], after=[PLATFORM]
    )


def _check(name: str, folder: str, parts: Mapping[str, str], *, reports: bool) -> Manifest:
    shared = name.startswith(f"{CHECKS_FOLDER}-")
    needed = (
        [] if shared else [f"model-{_last(folder)}", *(each for each in parts if each.startswith("checks-"))]
    )
    return flux_kustomization(
        name,
        path=folder,
        minutes=FOLDER_MINUTES[CHECKS_FOLDER],
        after=[PLATFORM, *(Dependency(each) for each in needed if each in parts)],
        # The value is known to `delivery`, which substitutes it here.
        substitutions={REPORTS_VARIABLE: f"${{{REPORTS_VARIABLE}}}"} if reports and not shared else None,
    )


def _last(folder: str) -> str:
    return folder.rpartition("/")[2]
