"""Composition root: one environment, its plan, the rendered tree and the stacks.

`cdk deploy --all -c env=prod` takes `environments/prod.yaml`; without a context it is `local`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk

from charts import RenderError, render
from infra.platform import add_platform
from modelyard.cli.workspace import ENVIRONMENTS, MODELS, open_workspace


def main() -> int:
    app = cdk.App()
    name = app.node.try_get_context("env") or "local"

    workspace = open_workspace(MODELS, ENVIRONMENTS, name)
    planned = workspace.plan()
    for finding in planned.findings if planned else workspace.findings:
        print(finding, file=sys.stderr)
    if planned is None or not planned.deployable:
        print(f"{name}: nothing was synthesised", file=sys.stderr)
        return 1

    tree = Path("dist") / name
    try:
        render(planned, tree)
    except RenderError as error:
        print(f"{error}\n{name}: nothing was synthesised", file=sys.stderr)
        return 1
    add_platform(app, planned.environment, tree=tree)
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
