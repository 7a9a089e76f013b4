"""Every checker over the stacks of every environment, and of the pipeline between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from infra.controls.acknowledgements import ACKNOWLEDGEMENTS, Acknowledgement, Place, Verdict, judge
from infra.controls.plugins import acknowledge, add_plugins, read_report
from infra.controls.scanners import StackTemplate, cfn_lint_violations, checkov_violations, templates_of
from infra.controls.violation import Violation
from infra.platform import add_platform
from modelyard.spec import load_environment

CHECKOV = Path(".venv-scanners") / "bin" / "checkov"


@dataclass(frozen=True)
class Survey:
    """What the checkers say of one app."""

    name: str
    place: Place
    templates: tuple[StackTemplate, ...]
    refused: frozenset[Violation]
    """What fails the synthesis of the app with its plugins."""
    violations: frozenset[Violation]
    """Everything that was found, accepted or not."""

    @property
    def verdict(self) -> Verdict:
        return judge(self.violations, self.place)


@dataclass(frozen=True)
class Assembled:
    """An app with the plugins in it, synthesised whatever they found."""

    name: str
    place: Place
    folder: Path


def shipped_apps(root: Path, folder: Path) -> list[Assembled]:
    """Every app of this repository."""
    environments = sorted(file.stem for file in (root / "environments").glob("*.yaml"))
    return [assemble(root, name, folder / name) for name in environments]


def assemble(
    root: Path,
    environment: str,
    folder: Path,
    *,
    name: str | None = None,  # default: the environment's
    change: Callable[[cdk.App], None] = lambda app: None,
) -> Assembled:
    """Synthesise an environment as it is shipped, or as `change` leaves it."""
    settings, _, findings = load_environment(root / "environments" / f"{environment}.yaml")
    if settings is None:
        raise ValueError("\n".join(str(finding) for finding in findings))
    app = new_app(root, folder / "cdk.out")
    stacks = add_platform(app, settings, tree=_some_tree(folder))
    change(app)
    disposable = settings.removal == "destroy"
    synthesise(app, stacks, disposable=disposable)
    return Assembled(
        name or environment, Place(settings.account, settings.region, disposable), folder / "cdk.out"
    )


def new_app(root: Path, out: Path) -> cdk.App:
    """An app with the feature flags that the command line takes from `cdk.json`."""
    flags: dict[str, Any] = json.loads((root / "cdk.json").read_text(encoding="utf-8"))["context"]
    return cdk.App(outdir=str(out), context=flags)


def synthesise(app: cdk.App, stacks: Iterable[cdk.Stack], *, disposable: bool) -> None:
    acknowledge(stacks, disposable=disposable)
    add_plugins(app)
    try:
        app.synth()
    except RuntimeError as refused:  # the assembly is complete; the report says what was found
        if "ValidationFailed" not in str(refused):
            raise


def survey(assembled: Iterable[Assembled], *, checkov: Path, workspace: Path) -> list[Survey]:
    """Hold all of `assembled` against every checker."""
    apps = list(assembled)
    templates = {each.name: templates_of(each.folder) for each in apps}
    scanned = checkov_violations(templates, command=checkov, workspace=workspace)
    surveys = []
    for each in apps:
        stacks = [template.construct for template in templates[each.name]]
        refused, acknowledged = read_report(each.folder, stacks)
        # The built-in validation runs in every synthesis; what it may say is acknowledged beside the construct.
        plugins = [*refused, *(found for found in acknowledged if found.checker != "cfn-validate")]
        found = {*plugins, *cfn_lint_violations(templates[each.name]), *scanned[each.name]}
        surveys.append(
            Survey(each.name, each.place, tuple(templates[each.name]), frozenset(refused), frozenset(found))
        )
    return surveys


def stale(surveys: Iterable[Survey]) -> list[tuple[Acknowledgement, str]]:
    """Rules of acknowledgements that matched nothing anywhere."""
    used = set()
    for each in surveys:
        for violation in each.violations:
            for acknowledgement in ACKNOWLEDGEMENTS:
                if acknowledgement.covers(violation, each.place):
                    rules = zip(acknowledgement.rules_in(each.place), acknowledgement.rules, strict=True)
                    used |= {(acknowledgement, rule) for named, rule in rules if named == violation.rule}
    return [(each, rule) for each in ACKNOWLEDGEMENTS for rule in each.rules if (each, rule) not in used]


def _some_tree(folder: Path) -> Path:
    """A folder to deliver. What is in it decides over the name of an asset and over nothing else in a template."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    (tree / "kustomization.yaml").write_text("resources: []\n", encoding="utf-8")
    return tree
