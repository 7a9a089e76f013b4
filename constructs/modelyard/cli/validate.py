"""`modelyard validate`: every check that is possible before the deploy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from modelyard.charts import project_hook
from modelyard.cli.hub import HubOption, with_hub
from modelyard.cli.printing import console, count, finding_json, print_findings, print_json
from modelyard.cli.workspace import EnvironmentsOption, ModelsOption, Output, OutputOption
from modelyard.findings import Finding, Severity, worst
from modelyard.project import ENVIRONMENTS, MODELS, Project, open_environment
from modelyard.spec import Catalogue, load_catalogue, load_model
from modelyard.spec.folders import environment_files

_HELP = """Check models and environments: syntax, memory, parallelism, flags, placement, quota, secrets.

\b
  modelyard validate                          all models in every environment
  modelyard validate --env prod               all models in one environment
  modelyard validate models/qwen.yaml         one file, as it would run in every environment
  modelyard validate --fail-on warning        for pipelines that tolerate nothing
  modelyard validate --env prod --crds DIR    custom resources too, against `kubectl get crds -o yaml` in DIR
"""


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(validate)


def validate(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Model files; default: --models.")
    ] = None,
    env: Annotated[
        str | None, typer.Option("--env", "-e", metavar="NAME", help="One environment; default: all.")
    ] = None,
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    fail_on: Annotated[Severity, typer.Option(help="Least severity that fails.")] = Severity.ERROR,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and the verdict alone.")] = False,
    crds: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            envvar="MODELYARD_CRDS",
            help="Render, and check custom resources against the definitions in DIR.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    hub: HubOption = False,
    output: OutputOption = Output.table,
) -> int:
    names = [env] if env else sorted(environment_files(environments))
    # Read once for all environments.
    catalogue, problems = _read(files, models) if files else load_catalogue(models)
    read = with_hub(catalogue) if hub else catalogue, problems
    projects = [_workspace(*read, files, environments, name) for name in names or ["local"]]
    checked = {name for project in projects for name in project.catalogue.models}
    judged = [_judged(project, crds) for project in projects]
    found = _once((name, findings) for name, (findings, _) in zip(names or ["local"], judged, strict=True))
    unchecked = sorted({kind for _, kinds in judged for kind in kinds})
    failed = worst(found) is Severity.ERROR or (fail_on is Severity.WARNING and bool(found))
    if output is Output.json:
        print_json(
            "Validation",
            environments=names,
            models=sorted(checked),
            passed=not failed,
            unchecked=unchecked,
            findings=[finding_json(finding) for finding in found],
        )
    else:
        print_findings(f for f in found if f.level is Severity.ERROR or not quiet)
        errors = sum(finding.level is Severity.ERROR for finding in found)
        where = f"{count(len(checked), 'model')} in {', '.join(names)}"
        verdict = "ok" if not found else f"{count(errors, 'error')}, {count(len(found) - errors, 'warning')}"
        console().print(f"{where}: {verdict}")
        if unchecked and not quiet:
            console(stderr=True).print(f"not checked: {', '.join(unchecked)}", soft_wrap=True)
    return 1 if failed else 0


def _judged(project: Project, crds: Path | None) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Findings of one environment, and what was not checked."""
    planned = project.plan()
    if planned is None or not planned.deployable:
        return (planned.findings if planned else project.findings), ()
    unchecked: tuple[str, ...] = ()
    if crds is None:
        unchecked = ("custom resources; --crds DIR names their definitions",)
    hook = project_hook()
    # Without patches and an organisation's charts all objects are Modelyard's own, which the tests check
    # against every rule.
    if crds is None and hook is None and not any(each.model.patches for each in planned.models):
        return planned.findings, unchecked
    # Imported here, because only rendering needs it.
    from modelyard.cli.rendered_findings import rendered_findings

    broken, unknown = rendered_findings(planned, hook, crds)
    if crds is not None:
        unchecked = tuple(f"{kind}, no definition in {crds}" for kind in unknown)
    return (*planned.findings, *project.located(broken)), unchecked


_WHERE = "\0"  # placeholder for the environment while messages are compared


def _once(judged: Iterable[tuple[str, tuple[Finding, ...]]]) -> list[Finding]:
    """Each problem once, however many environments have it, with its most severe level."""
    seen: dict[tuple[object, ...], tuple[Finding, list[str]]] = {}
    for environment, findings in judged:
        for finding in findings:
            neutral = replace(finding, message=finding.message.replace(f"environment {environment}", _WHERE))
            first, environments = seen.setdefault(neutral.sort_key, (neutral, []))
            environments.append(environment)
            if finding.level is Severity.ERROR:  # strict environments turn warnings into errors
                seen[neutral.sort_key] = (first.promoted(), environments)
    merged = []
    for finding, environments in seen.values():
        noun = "environment" if len(environments) == 1 else "environments"
        named = finding.message.replace(_WHERE, f"{noun} {', '.join(environments)}")
        merged.append(replace(finding, message=named))
    return sorted(merged, key=lambda finding: finding.sort_key)


def _read(files: list[Path], models: Path) -> tuple[Catalogue, list[Finding]]:
    read = {}
    sources = {}
    findings: list[Finding] = []
    for path in files:
        # Like `load_catalogue`: a folder in the models' folder is a team's.
        team = path.parent.name if path.parent.resolve().parent == models.resolve() else None
        model, source, problems = load_model(path, team=team)
        findings += problems
        if model and source:
            read[model.name] = model
            sources[model.name] = source
    return Catalogue(read, sources), findings


def _workspace(
    catalogue: Catalogue, findings: list[Finding], files: list[Path] | None, environments: Path, env: str
) -> Project:
    project = open_environment(catalogue, findings, environments, env)
    if not files or project.environment is None:
        return project
    # Only the named files are judged; an override for another model in the folder is not their error.
    overrides = {n: o for n, o in project.environment.overrides.items() if n in catalogue.models}
    return replace(project, environment=project.environment.model_copy(update={"overrides": overrides}))
