"""`modelyard checklist`: the production checklist, checked on the rendered objects."""

from __future__ import annotations

from itertools import groupby

import typer

from modelyard.charts import project_hook
from modelyard.cli.printing import console, count, finding_json, print_findings, print_json, table
from modelyard.cli.workspace import EnvironmentsOption, EnvOption, ModelsOption, Output, OutputOption
from modelyard.findings import Finding, Severity, worst
from modelyard.object_rules.checklist import PointVerdict, Result, checklist, checklist_findings
from modelyard.objects.composition import RenderError, checked_objects
from modelyard.planning import Plan
from modelyard.project import ENVIRONMENTS, MODELS, Project, load_project

_HELP = """Judge every model by the production checklist: memory, instance, quantization, length, parallelism, shm,
metrics, scaling, caches, drain, access. Each point is read off the objects that would be rendered.

\b
  modelyard checklist --env prod
  modelyard checklist --env prod --output json | jq '.models[].points[] | select(.result == "fail")'

A point that fails is a warning, and an error where the environment's policy is strict.
"""


def register(app: typer.Typer) -> None:
    app.command("checklist", help=_HELP)(check_models)


def check_models(
    env: EnvOption = "local",
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.table,
) -> int:
    project = load_project(env, models, environments)
    planned = project.plan()
    verdicts: tuple[PointVerdict, ...] = ()
    if planned is None or not planned.deployable:
        findings = list(planned.findings if planned else project.findings)
    else:
        verdicts, findings = _judged(planned, project)
    bad = worst(findings) is Severity.ERROR
    if output is Output.json:
        print_json(
            "Checklist",
            environment=env,
            passed=not bad,
            models=[
                {"model": model, "points": [_json(verdict) for verdict in points]}
                for model, points in groupby(verdicts, key=lambda verdict: verdict.model)
            ],
            findings=[finding_json(finding) for finding in findings],
        )
    else:
        _print(env, verdicts)
        print_findings(findings)
    return 1 if bad else 0


def _judged(planned: Plan, project: Project) -> tuple[tuple[PointVerdict, ...], list[Finding]]:
    try:
        folders = checked_objects(planned, project_hook())
    except RenderError as error:  # invalid objects cannot be checked
        return (), project.located(error.findings)
    verdicts = checklist(planned, [item for folder in folders.values() for item in folder])
    return verdicts, project.located(checklist_findings(verdicts, strict=planned.environment.strict))


def _json(verdict: PointVerdict) -> dict[str, str | None]:
    return {
        "point": verdict.point,
        "result": str(verdict.result),
        "reason": verdict.reason,
        "fix": verdict.fix or None,
    }


def _print(env: str, verdicts: tuple[PointVerdict, ...]) -> None:
    if not verdicts:
        return
    rows = {model: list(points) for model, points in groupby(verdicts, key=lambda verdict: verdict.model)}
    columns = [verdict.point.upper() for verdict in next(iter(rows.values()))]
    out = console()
    out.print(
        table(
            f"{env}: {count(len(rows), 'model')}",
            ("MODEL", *columns),
            ([model, *(str(verdict.result) for verdict in points)] for model, points in rows.items()),
        )
    )
    for verdict in verdicts:
        if verdict.result is not Result.PASS:
            out.print(f"{verdict.model} {verdict.point} {verdict.result}: {verdict.reason}", soft_wrap=True)
