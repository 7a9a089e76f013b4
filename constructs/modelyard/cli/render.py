"""`modelyard render`: the Kubernetes objects of an environment, one object per file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from modelyard.charts import project_hook
from modelyard.cli.printing import (
    console,
    count,
    finding_json,
    print_findings,
    print_json,
    print_left_alone,
)
from modelyard.cli.workspace import (
    EnvironmentsOption,
    EnvOption,
    ModelsOption,
    Output,
    OutputOption,
    apart_from_inputs,
)
from modelyard.objects.composition import RenderError
from modelyard.objects.rendering import render as write
from modelyard.project import ENVIRONMENTS, MODELS, load_project

_HELP = """Write the Kubernetes objects of an environment, one object a file, the same bytes each time.
The folder changes in one step. Files in it that modelyard did not write are left alone, edited ones refused.

\b
  modelyard render --env dev                       into dist/dev
  modelyard render --env prod --detailed-exitcode  exit 2 when files changed
  kubectl diff -k dist/prod
  modelyard render --env dev --target compose      one box with Docker Compose, into dist/dev-compose
  modelyard render --env dev --target kserve       KServe's LLMInferenceService, into dist/dev-kserve
  modelyard render --env dev --target sim          simulators instead of engines, into dist/dev-sim
"""


class RenderTarget(StrEnum):
    kubernetes = "kubernetes"
    compose = "compose"
    kserve = "kserve"
    sim = "sim"


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(render)


def render(
    env: EnvOption = "local",
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder that gets one for the environment: DIR/NAME.")
    ] = Path("dist"),
    target: Annotated[
        RenderTarget, typer.Option(help="What is to run the models; its name is added to the folder.")
    ] = RenderTarget.kubernetes,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace files that were edited, or that somebody else wrote in the place of ours.",
        ),
    ] = False,
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    detailed_exitcode: Annotated[bool, typer.Option(help="Exit 2 when any file changed.")] = False,
    output: OutputOption = Output.table,
) -> int:
    folder = out / (env if target is RenderTarget.kubernetes else f"{env}-{target}")
    apart_from_inputs(folder, models, environments)
    project = load_project(env, models, environments)
    planned = project.plan()
    findings = planned.findings if planned else project.findings
    if planned is None or not planned.deployable:
        print_findings(findings)
        if output is Output.json:
            print_json("Rendering", environment=env, findings=[finding_json(f) for f in findings])
        return 1
    try:
        result = write(planned, folder, target.value, hook=project_hook(), overwrite=overwrite)
    except RenderError as error:
        located = project.located(error.findings)
        print_findings(located)
        if output is Output.json:
            print_json("Rendering", environment=env, findings=[finding_json(f) for f in located])
        return 1
    left_out = project.located(result.left_out)
    if output is Output.json:
        print_json(
            "Rendering",
            environment=env,
            target=str(target),
            directory=str(folder),
            files=[str(path) for path in result.files],
            changed=[str(path) for path in result.changed],
            removed=[str(path) for path in result.removed],
            foreign=[str(path) for path in result.foreign],
            findings=[finding_json(finding) for finding in left_out],
        )
    else:
        changes = len(result.changed) + len(result.removed)
        print_findings(left_out)
        for path in result.removed:
            console().print(f"  - {path}", soft_wrap=True, markup=False)
        if result.foreign:
            print_left_alone(result.foreign)
        console().print(f"{folder}: {count(len(result.files), 'file')}, {changes} changed", markup=False)
    return 2 if detailed_exitcode and (result.changed or result.removed) else 0
