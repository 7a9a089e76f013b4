"""A plan to a tree of files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from cdk8s import App, Chart

from charts.addons import AddonsChart
from charts.argocd import ArgoChart
from charts.checks import ChecksChart, ProgramsChart
from charts.litellm import LiteLlmChart
from charts.model import ModelChart
from charts.monitoring import MonitoringChart
from charts.platform import PlatformChart
from charts.weights import WeightsChart
from modelyard.findings import Finding
from modelyard.k8s.manifest import collected
from modelyard.k8s.patches import apply_patches
from modelyard.k8s.tree import write_tree
from modelyard.manifests import check_objects
from modelyard.planning import Plan
from modelyard.writing import Rendering

WEIGHTS = "models/_weights"
"""Folder of the fetch jobs: beside the models, and no model has such a name."""

LITELLM = "models/_litellm"
"""Folder of the proxy in front of all models."""

PROGRAMS = "checks/_programs"
"""Folder of what the jobs of all models run."""

Objects = list[dict[str, Any]]


class RenderError(Exception):
    """Rendered objects break a rule; `findings` say which."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings


def render(plan: Plan, out: Path) -> Rendering:
    """Write the objects of `plan` below `out`; nothing is written when one breaks a rule.

    Raises:
        RenderError: an object, most likely a patched one, breaks a rule.
        NotWritten: something of somebody else would be lost, or the files cannot be written.
    """
    folders = environment_objects(plan)
    findings = check_objects(item for objects in folders.values() for item in objects)
    if findings:
        raise RenderError(findings)
    return write_tree(out, folders)


def environment_objects(plan: Plan) -> dict[str, Objects]:
    """Folder below the environment's root to its objects.

    Raises:
        RenderError: a patch names a kind that its model does not render.
    """
    app = App()
    environment = plan.environment
    folders = {"platform": _objects(lambda: PlatformChart(app, "platform", plan=plan))}
    autoscaled = any(model.model.autoscaled for model in plan.models)
    if environment.monitoring.enabled:
        folders["monitoring"] = _objects(
            lambda: MonitoringChart(app, "monitoring", plan=plan, autoscaling=autoscaled)
        )
    if environment.delivery != "none":
        folders["addons"] = _objects(lambda: AddonsChart(app, "addons", plan=plan))
    if git := environment.git:
        folders["argocd"] = _objects(lambda: ArgoChart(app, "argocd", environment=environment, git=git))
    if jobs := _objects(lambda: WeightsChart(app, "weights", plans=plan.models, environment=environment)):
        folders[WEIGHTS] = jobs
    if settings := environment.litellm:
        folders[LITELLM] = _objects(
            lambda: LiteLlmChart(
                app, "litellm", plans=plan.models, environment=environment, settings=settings
            )
        )
    findings = []
    for name, plans in groupby(plan.models, key=lambda planned: planned.model.name):
        members = list(plans)
        objects = _objects(partial(ModelChart, app, f"models-{name}", plans=members, environment=environment))
        try:
            folders[f"models/{name}"] = apply_patches(objects, members[0].model.patches)
        except LookupError as error:
            problem = Finding("K8S001", str(error), "name one of these kinds", subject=name)
            findings.append(replace(problem, field=("patches",)))
        # A model without a replica answers nobody until somebody asks for more; a batch never does.
        [answering] = [planned for planned in members if planned.role != "prefill"]
        if environment.checks.enabled and answering.model.replicas.min and not answering.model.batch:
            folders[f"checks/{name}"] = _objects(
                partial(ChecksChart, app, f"checks-{name}", plan=answering, environment=environment)
            )
    if any(folder.startswith("checks/") for folder in folders):
        folders[PROGRAMS] = _objects(lambda: ProgramsChart(app, "programs", environment=environment))
    if findings:
        raise RenderError(findings)
    return folders


def _objects(make: Callable[[], Chart]) -> Objects:
    """Objects of the chart that `make` makes."""
    with collected() as objects:
        make()
    return objects
