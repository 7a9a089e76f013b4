"""Composition root: one environment, its plan, the rendered tree and the stacks.

`cdk deploy --all -c env=prod` uses `environments/prod.yaml`; the default environment is `local`. With `-c
controls=true` the synthesis fails on findings of cdk-nag, cfn-guard or the rules of `infra/controls`. `-c
pipeline=true` synthesises the pipeline of `pipeline.yaml` with all its environments instead; `-c github=true`
adds the role of the GitHub workflow to one environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk

from infra.github import GitHubStack
from infra.pipeline import PipelineStack
from infra.platform import add_platform
from modelyard.charts import ChartsError, project_hook
from modelyard.objects.composition import RenderError
from modelyard.objects.rendering import render
from modelyard.project import ENVIRONMENTS, MODELS, load_project
from modelyard.spec import Environment, Pipeline, load_pipeline
from modelyard.writing import NotWritten

PIPELINE = Path("pipeline.yaml")


def rendered(name: str) -> tuple[Environment, Path] | None:
    """Environment `name` and its tree in `dist`; None if a finding or a broken rule forbids the deploy."""
    workspace = load_project(name, MODELS, ENVIRONMENTS)
    planned = workspace.plan()
    for finding in planned.findings if planned else workspace.findings:
        print(finding, file=sys.stderr)
    if planned is None or not planned.deployable:
        print(f"{name}: nothing was synthesised", file=sys.stderr)
        return None

    tree = Path("dist") / name
    try:
        result = render(planned, tree, hook=project_hook())
    except (ChartsError, RenderError, NotWritten) as error:
        print(f"{error}\n{name}: nothing was synthesised", file=sys.stderr)
        return None
    for path in result.removed:
        print(f"{tree}: removed {path}", file=sys.stderr)
    return planned.environment, tree


def add_environment(app: cdk.App, name: str) -> bool:
    delivered = rendered(name)
    if delivered is None:
        return False
    environment, tree = delivered
    add_platform(app, environment, tree=tree)
    if asked_for(app, "github") and (pipeline := readable_pipeline()):
        GitHubStack(app, "GitHub", settings=environment, pipeline=pipeline)
    return True


def add_pipeline(app: cdk.App) -> bool:
    pipeline = readable_pipeline()
    if pipeline is None:
        return False
    delivered = [rendered(stage.environment) for stage in pipeline.stages]
    ready = [each for each in delivered if each is not None]
    if len(ready) < len(delivered):
        return False
    PipelineStack(app, "Pipeline", pipeline=pipeline, environments=ready)
    return True


def readable_pipeline() -> Pipeline | None:
    pipeline, _, findings = load_pipeline(PIPELINE)
    for finding in findings:
        print(finding, file=sys.stderr)
    return pipeline


def asked_for(app: cdk.App, switch: str) -> bool:
    return str(app.node.try_get_context(switch)).lower() == "true"


def main() -> int:
    app = cdk.App()
    name = app.node.try_get_context("env") or "local"
    if not (add_pipeline(app) if asked_for(app, "pipeline") else add_environment(app, name)):
        return 1
    if asked_for(app, "controls"):
        # Imported here: without controls, the app runs without the checkers installed.
        from infra.controls.plugins import add_controls

        add_controls(app)
    app.synth()
    return 0
