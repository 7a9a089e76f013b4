"""A plan to a tree of files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from cdk8s import App, Chart

from charts.addons import AddonsChart
from charts.argocd import ArgoChart
from charts.checks import ChecksChart
from charts.model import ModelChart
from charts.platform import PlatformChart
from modelyard.findings import Finding
from modelyard.k8s.patches import apply_patches
from modelyard.k8s.tree import Rendering, objects_of, write_tree
from modelyard.manifests import check_objects
from modelyard.planning import Plan

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
    charts: dict[str, Chart] = {"platform": PlatformChart(app, "platform", environment=environment)}
    if environment.delivery != "none":
        autoscaled = any(model.model.autoscaled for model in plan.models)
        charts["addons"] = AddonsChart(app, "addons", environment=environment, autoscaling=autoscaled)
    if environment.git:
        charts["argocd"] = ArgoChart(app, "argocd", environment=environment, git=environment.git)
    folders = {folder: objects_of(chart) for folder, chart in charts.items()}
    findings = []
    for model in plan.models:
        chart = ModelChart(app, f"models-{model.name}", plan=model, environment=environment)
        try:
            folders[f"models/{model.name}"] = apply_patches(objects_of(chart), model.model.patches)
        except LookupError as error:
            problem = Finding("K8S001", str(error), "name one of these kinds", subject=model.name)
            findings.append(replace(problem, field=("patches",)))
        # A model without a replica answers nobody until somebody asks for more.
        if environment.checks.enabled and model.model.replicas.min:
            checks = ChecksChart(app, f"checks-{model.name}", plan=model, environment=environment)
            folders[f"checks/{model.name}"] = objects_of(checks)
    if findings:
        raise RenderError(findings)
    return folders
