"""`modelyard validate`: every check that is possible before the deploy."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from modelyard.charts import project_hook
from modelyard.cli.completion import environment_names, models_and_files
from modelyard.cli.hub import HubOption, with_hub
from modelyard.cli.printing import console, count, finding_json, print_findings, print_json
from modelyard.cli.workspace import EnvironmentsOption, ModelsOption, Output, OutputOption
from modelyard.findings import Finding, Severity, worst
from modelyard.planning import plan
from modelyard.planning.anywhere import ANYWHERE, anywhere, region_of
from modelyard.project import ENVIRONMENTS, MODELS, Project, open_environment
from modelyard.reading import suggestion
from modelyard.secret_values import shown
from modelyard.spec import Catalogue, Model, load_catalogue, load_model
from modelyard.spec.folders import SUFFIXES, environment_files
from modelyard.spec.loading import model_paths

_HELP = """Check models and environments: syntax, memory, parallelism, flags, placement, quota, secrets.

\b
  modelyard validate                          all models in every environment
  modelyard validate --env prod               all models in one environment
  modelyard validate qwen                     one model (or its file), as it would run in every environment
  modelyard validate --fail-on warning        for pipelines that tolerate nothing
  modelyard validate --env prod --crds DIR    custom resources too, against `kubectl get crds -o yaml` in DIR
  modelyard validate --env prod --context C   every object and pod too, by a dry run of that cluster's API server
"""


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(validate)


def validate(
    wanted: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="Names of models, or files; default: all in --models.",
            autocompletion=models_and_files,
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            "--env",
            "-e",
            metavar="NAME",
            help="One environment; default: all.",
            autocompletion=environment_names,
        ),
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
    context: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --env: ask the API server of this context of the kubeconfig as well; it keeps nothing.",
        ),
    ] = None,
    hub: HubOption = False,
    output: OutputOption = Output.table,
) -> int:
    if context and not env:
        raise typer.BadParameter("a cluster is asked for one environment: name it with --env")
    names = [env] if env else sorted(environment_files(environments))
    # Read once for all environments.
    catalogue, problems = _read(_files(wanted, models), models) if wanted else load_catalogue(models)
    catalogue = with_hub(catalogue) if hub else catalogue
    judged = (
        [
            _judged(
                _project(catalogue, problems, bool(wanted), environments, name),
                crds,
                context,
                some=bool(wanted),
            )
            for name in names
        ]
        if names
        else [_judged_by_itself(catalogue, problems)]
    )
    found = _once((name, found) for name, (found, _) in zip(names or [ANYWHERE], judged, strict=True))
    unchecked = sorted({kind for _, kinds in judged for kind in kinds})
    failed = worst(found) is Severity.ERROR or (fail_on is Severity.WARNING and bool(found))
    if output is Output.json:
        print_json(
            "Validation",
            environments=names,
            models=sorted(catalogue.models),
            passed=not failed,
            unchecked=unchecked,
            findings=[finding_json(finding) for finding in found],
        )
    else:
        print_findings(f for f in found if f.level is Severity.ERROR or not quiet)
        errors = sum(finding.level is Severity.ERROR for finding in found)
        where = f"{count(len(catalogue.models), 'model')} in {', '.join(names) or 'no environment'}"
        verdict = "ok" if not found else f"{count(errors, 'error')}, {count(len(found) - errors, 'warning')}"
        console().print(f"{where}: {verdict}")
        if unchecked and not quiet:
            console(stderr=True).print(f"not checked: {', '.join(unchecked)}", soft_wrap=True)
    return 1 if failed else 0


def _judged(
    project: Project, crds: Path | None, context: str | None, *, some: bool
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Findings of one environment, and what was not checked.

    `some`: without warnings about the environment's file, which the authors of some models cannot mend.
    """
    planned = project.plan()
    if planned is None:
        return project.findings, ()
    file = project.source.file if some and project.source else None
    findings = tuple(each for each in planned.findings if not _is_warning_in(each, file))
    if not planned.deployable:
        return findings, ()
    unchecked: tuple[str, ...] = ()
    if crds is None and context is None:
        unchecked = ("custom resources; --crds DIR names their definitions",)
    hook = project_hook()
    changed = hook is not None or planned.patched
    # Without patches and an organisation's charts all objects are Modelyard's own, which the tests check
    # against every rule.
    if crds is None and not changed and context is None:
        return findings, unchecked
    # Imported here, because only rendering needs them.
    from modelyard.cli.rendered_findings import rendered_findings
    from modelyard.object_rules import api_schemas

    broken, unknown = rendered_findings(planned, hook, crds)
    if context is not None:
        from modelyard.cli.asked_cluster import asked_findings

        refused, unasked = asked_findings(planned, hook, context)
        broken, unchecked = broken + refused, (*unchecked, *unasked)
    if crds is not None:
        unchecked += tuple(f"{kind}, no definition in {crds}" for kind in unknown)
    if changed and not api_schemas.installed():
        unchecked += ("fields of Kubernetes' own kinds; install modelyard[crds]",)
    return (*findings, *project.located(broken)), unchecked


def _is_warning_in(finding: Finding, file: str | None) -> bool:
    """Whether it is a warning about `file`, even if a strict policy made it an error."""
    here = finding.location is not None and finding.location.file == file
    return here and replace(finding, severity=None).level is Severity.WARNING


def _judged_by_itself(
    catalogue: Catalogue, problems: list[Finding]
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Findings about models where there is no environment, and what was not checked."""
    by_region: dict[str, dict[str, Model]] = defaultdict(dict)
    for name, model in catalogue.models.items():
        by_region[region_of(model)][name] = model
    findings = list(problems)
    for region, models in by_region.items():
        found = plan(replace(catalogue, models=models), anywhere(models.values(), region)).findings
        findings += [each for each in found if each.subject in models and not _is_of_a_pool(each)]
    return tuple(findings), ("placement, quotas, secrets and objects; there is no environment",)


def _is_of_a_pool(finding: Finding) -> bool:
    return finding.code.startswith("CAP") and finding.level is Severity.WARNING


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


def _files(wanted: Iterable[str], models: Path) -> list[Path]:
    """The model files of names and paths.

    Raises:
        typer.BadParameter: there is neither such a file nor such a model.
    """
    known: dict[str, Path] = {}
    found = []
    for word in wanted:
        if os.path.lexists(word) or Path(word).name != word or Path(word).suffix in SUFFIXES:
            found.append(Path(word))
            continue
        known = known or {path.stem: path for path, _ in model_paths(models)[0]}
        if word not in known:
            way_out = f"models are {', '.join(sorted(known))}" if known else f"create {models / word}.yaml"
            raise typer.BadParameter(
                f"there is no file {shown(word)} and no model of this name in {models}; "
                f"{suggestion(word, known)}{way_out}"
            )
        found.append(known[word])
    return found


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


def _project(
    catalogue: Catalogue, findings: list[Finding], some: bool, environments: Path, env: str
) -> Project:
    """`some`: only the models of the catalogue are judged, which are not all in the folder."""
    project = open_environment(catalogue, findings, environments, env)
    if not some or project.environment is None:
        return project
    # Only the named files are judged; an override for another model in the folder is not their error.
    overrides = {n: o for n, o in project.environment.overrides.items() if n in catalogue.models}
    return replace(project, environment=project.environment.model_copy(update={"overrides": overrides}))
