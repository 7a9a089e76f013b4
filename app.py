"""Composition root: one environment, its plan, the rendered tree and the stacks.

`cdk deploy --all -c env=prod` takes `environments/prod.yaml`; without a context it is `local`. With `-c controls=true` the
synthesis fails on what cdk-nag, cfn-guard or the rules of `infra/controls` find.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk

from charts import RenderError, render
from infra.platform import add_platform
from modelyard.cli.workspace import ENVIRONMENTS, MODELS, open_workspace
from modelyard.spec import Environment


def rendered(name: str) -> tuple[Environment, Path] | None:
    """Environment `name` and its tree in `dist`; None where a finding or a rule forbids to deploy it."""
    workspace = open_workspace(MODELS, ENVIRONMENTS, name)
    planned = workspace.plan()
    for finding in planned.findings if planned else workspace.findings:
        print(finding, file=sys.stderr)
    if planned is None or not planned.deployable:
        print(f"{name}: nothing was synthesised", file=sys.stderr)
        return None

    tree = Path("dist") / name
    try:
        render(planned, tree)
    except RenderError as error:
        print(f"{error}\n{name}: nothing was synthesised", file=sys.stderr)
        return None
    return planned.environment, tree


def main() -> int:
    app = cdk.App()
    delivered = rendered(app.node.try_get_context("env") or "local")
    if delivered is None:
        return 1
    environment, tree = delivered
    stacks = add_platform(app, environment, tree=tree)
    if app.node.try_get_context("controls") == "true":
        # Beside the library: an app that does not ask for the checkers runs without them being installed.
        from infra.controls.plugins import acknowledge, add_plugins

        acknowledge(stacks, disposable=environment.removal == "destroy")
        add_plugins(app)
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
