"""Every checker on the stacks of every environment, and on the pipeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from infra.controls.acknowledgement import AcceptedRules, Place
from infra.controls.acknowledgements import Verdict, judge
from infra.controls.plugins import add_controls, place_of, read_report
from infra.controls.scanners import StackTemplate, cfn_lint_violations, checkov_violations, templates_of
from infra.controls.violation import Violation
from infra.github import GitHubStack
from infra.pipeline import PipelineStack
from infra.platform import add_platform
from modelyard.names import KUSTOMIZATION
from modelyard.spec import Environment, Pipeline, load_environment, load_pipeline
from modelyard.spec.folders import environment_files

PIPELINE = "pipeline"
CHECKOV = Path(".venv-scanners") / "bin" / "checkov"


@dataclass(frozen=True)
class Survey:
    """The checkers' findings for one app."""

    name: str
    place: Place
    templates: tuple[StackTemplate, ...]
    refused: frozenset[Violation]
    """Findings that fail the synthesis of the app with its plugins."""
    violations: frozenset[Violation]
    """All findings, accepted or not."""

    @property
    def verdict(self) -> Verdict:
        return judge(self.violations, self.place)


@dataclass(frozen=True)
class Assembled:
    """An app with its plugins, synthesised regardless of findings. `stacks`: the stacks to check here."""

    name: str
    place: Place
    folder: Path
    stacks: tuple[str, ...]


def shipped_apps(root: Path, folder: Path, wanted: Sequence[str] = ()) -> list[Assembled]:
    """Every app of this repository: each environment with its workflow role, and the pipeline."""
    environments = sorted(environment_files(root / "environments"))
    if unknown := set(wanted) - {*environments, PIPELINE}:
        raise SystemExit(
            f"no app {', '.join(sorted(unknown))}; there are {', '.join([*environments, PIPELINE])}"
        )
    apps = [assemble(root, name, folder / name) for name in environments if not wanted or name in wanted]
    return apps if wanted and PIPELINE not in wanted else [*apps, assemble_pipeline(root, folder / PIPELINE)]


def assemble(
    root: Path,
    environment: str,
    folder: Path,
    *,
    name: str | None = None,  # default: the environment's
    change: Callable[[cdk.App], None] = lambda app: None,
) -> Assembled:
    """Synthesise an environment as shipped, or modified by `change`."""
    settings = read_environment(root, environment)
    app = new_app(root, folder / "cdk.out")
    stacks: list[cdk.Stack] = [*add_platform(app, settings, tree=_some_tree(folder))]
    stacks.append(GitHubStack(app, "GitHub", settings=settings, pipeline=read_pipeline(root)))
    change(app)
    return _synthesised(app, name or environment, stacks, folder / "cdk.out")


def assemble_pipeline(root: Path, folder: Path) -> Assembled:
    """Synthesise the pipeline with its stages. The stages' stacks are the environments' and are checked
    there."""
    pipeline, tree = read_pipeline(root), _some_tree(folder)
    stages = [(read_environment(root, stage.environment), tree) for stage in pipeline.stages]
    app = new_app(root, folder / "cdk.out")
    stack = PipelineStack(app, "Pipeline", pipeline=pipeline, environments=stages)
    return _synthesised(app, PIPELINE, [stack], folder / "cdk.out")


def read_environment(root: Path, name: str) -> Environment:
    settings, _, findings = load_environment(environment_files(root / "environments")[name][0])
    if settings is None:
        raise ValueError("\n".join(str(finding) for finding in findings))
    return settings


def read_pipeline(root: Path) -> Pipeline:
    pipeline, _, findings = load_pipeline(root / "pipeline.yaml")
    if pipeline is None:
        raise ValueError("\n".join(str(finding) for finding in findings))
    return pipeline


def new_app(root: Path, out: Path, *, validate: bool = True) -> cdk.App:
    """An app with the feature flags of `cdk.json`, with or without CDK's own validation."""
    flags: dict[str, Any] = json.loads((root / "cdk.json").read_text(encoding="utf-8"))["context"]
    return cdk.App(outdir=str(out), context=flags, builtin_cloud_formation_validation=validate)


def _synthesised(app: cdk.App, name: str, stacks: Sequence[cdk.Stack], out: Path) -> Assembled:
    add_controls(app)
    try:
        app.synth()
    except RuntimeError as refused:  # the assembly is complete; the report has the findings
        if "ValidationFailed" not in str(refused):
            raise
    return Assembled(name, place_of(stacks[0]), out, tuple(stack.node.path for stack in stacks))


def survey(assembled: Iterable[Assembled], *, checkov: Path, workspace: Path) -> list[Survey]:
    """Check all of `assembled` with every checker."""
    apps = list(assembled)
    templates = {
        app.name: [each for each in templates_of(app.folder) if each.construct in app.stacks] for app in apps
    }
    scanned = checkov_violations(templates, command=checkov, workspace=workspace)
    surveys = []
    for app in apps:
        refused, acknowledged = read_report(app.folder, [each.construct for each in templates_of(app.folder)])
        # The built-in validation runs in every synthesis; its acknowledgements are next to the constructs.
        plugins = [*refused, *(found for found in acknowledged if found.checker != "cfn-validate")]
        names = {each.stack for each in templates[app.name]}
        here = {found for found in plugins if not found.path or found.path.partition("/")[0] in names}
        found = {
            *here,
            *cfn_lint_violations(templates[app.name], region=app.place.region),
            *scanned[app.name],
        }
        surveys.append(
            Survey(app.name, app.place, tuple(templates[app.name]), frozenset(refused), frozenset(found))
        )
    return surveys


def stale(
    surveys: Iterable[Survey], acknowledgements: Iterable[AcceptedRules]
) -> list[tuple[AcceptedRules, str]]:
    """Rules of `acknowledgements` that matched no finding."""
    wanted = list(acknowledgements)
    used = {
        (acknowledgement, rule)
        for each in surveys
        for violation in each.violations
        for acknowledgement in wanted
        if acknowledgement.covers(violation, each.place)
        for rule in acknowledgement.rules
        if violation.rule in acknowledgement.names_of(rule, each.place)
    }
    return [(each, rule) for each in wanted for rule in each.rules if (each, rule) not in used]


def _some_tree(folder: Path) -> Path:
    """A tree to deliver. Its content affects only the asset's name in a template."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    (tree / KUSTOMIZATION).write_text("resources: []\n", encoding="utf-8")
    return tree
