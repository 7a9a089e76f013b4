"""A plan to a tree of files."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from cdk8s import App, Chart

from charts.addons import AddonsChart
from charts.argocd import ArgoChart
from charts.checks import ChecksChart
from charts.litellm import LiteLlmChart
from charts.model import ModelChart
from charts.monitoring import MonitoringChart
from charts.platform import PlatformChart
from charts.weights import WeightsChart
from modelyard.findings import Finding
from modelyard.k8s.patches import apply_patches
from modelyard.k8s.tree import Rendering, objects_of, write_tree
from modelyard.manifests import check_objects
from modelyard.planning import Plan

WEIGHTS = "models/_weights"
"""Folder of the fetch jobs: beside the models, and no model has such a name."""

LITELLM = "models/_litellm"
"""Folder of the proxy in front of all models."""

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
    autoscaled = any(model.model.autoscaled for model in plan.models)
    if environment.monitoring.enabled:
        charts["monitoring"] = MonitoringChart(app, "monitoring", plan=plan, autoscaling=autoscaled)
    if environment.delivery != "none":
        charts["addons"] = AddonsChart(app, "addons", plan=plan)
    if environment.git:
        charts["argocd"] = ArgoChart(app, "argocd", environment=environment, git=environment.git)
    folders = {folder: objects_of(chart) for folder, chart in charts.items()}
    weights = WeightsChart(app, "models-weights", plans=plan.models, environment=environment)
    if jobs := objects_of(weights):
        folders[WEIGHTS] = jobs
    if environment.litellm:
        proxy = LiteLlmChart(
            app, "models-litellm", plans=plan.models, environment=environment, settings=environment.litellm
        )
        folders[LITELLM] = objects_of(proxy)
    findings = []
    for name, plans in groupby(plan.models, key=lambda planned: planned.model.name):
        members = list(plans)
        chart = ModelChart(app, f"models-{name}", plans=members, environment=environment)
        try:
            folders[f"models/{name}"] = apply_patches(objects_of(chart), members[0].model.patches)
        except LookupError as error:
            problem = Finding("K8S001", str(error), "name one of these kinds", subject=name)
            findings.append(replace(problem, field=("patches",)))
        # A model without a replica answers nobody until somebody asks for more; a batch never does.
        [answering] = [planned for planned in members if planned.role != "prefill"]
        if environment.checks.enabled and answering.model.replicas.min and not answering.model.batch:
            checks = ChecksChart(app, f"checks-{name}", plan=answering, environment=environment)
            folders[f"checks/{name}"] = objects_of(checks)
    if findings:
        raise RenderError(findings)
    return folders
