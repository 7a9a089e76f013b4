"""`modelyard upgrade-plan`: from one Kubernetes minor to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from packaging.version import Version

from modelyard.cli.connections import ProfileOption, account_of
from modelyard.cli.printing import console, count, print_json, table
from modelyard.cli.workspace import (
    CommandError,
    EnvironmentsOption,
    EnvOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.live.api.answers import Unanswered
from modelyard.live.clusters.readiness import Readiness, readiness
from modelyard.live.clusters.upgrade import Obstacle, UpgradeStep, days_of_support, obstacles, upgrade_steps
from modelyard.live.eks import described_cluster
from modelyard.project import ENVIRONMENTS, environment_path
from modelyard.spec import Environment, load_environment
from modelyard.spec.folders import environment_files

_HELP = """Say what is in the way of a Kubernetes upgrade, and what happens in which order. Nothing is changed.

\b
  modelyard upgrade-plan --env prod --to 1.36              asks EKS what runs
  modelyard upgrade-plan --env prod --from 1.35 --to 1.36  asks nobody

The exit code is 0 where nothing is in the way, 1 where something is, 2 where nothing is and not everything could be checked,
64 for misuse.
"""
_NOT_CHECKED = 2
_MINOR = re.compile(r"1\.\d{2,3}")
_NOBODY = "000000000000"


def register(app: typer.Typer) -> None:
    app.command("upgrade-plan", help=_HELP)(upgrade_plan)


def _checked(value: str | None) -> str | None:
    if value is not None and not _MINOR.fullmatch(value):
        raise typer.BadParameter(f"'{value}' is no Kubernetes minor such as 1.36")
    return value


def upgrade_plan(
    to: Annotated[str, typer.Option("--to", metavar="MINOR", help="Such as 1.36.", callback=_checked)],
    env: EnvOption = "local",
    current: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="MINOR", help="Default: what EKS says that the cluster runs.", callback=_checked
        ),
    ] = None,
    profile: ProfileOption = None,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.table,
) -> int:
    environment = readable_environment(environments, env)
    if environment.cluster.existing:
        raise CommandError(
            f"cluster {environment.cluster_name} is upgraded by those who manage it; afterwards, in "
            f'{environment_path(environments, env)}: cluster: {{version: "{to}"}}, and `modelyard validate --env {env}` names '
            "components that are too old for it"
        )
    found = Readiness()
    if current is None:
        current, found = _asked(environment, profile, to)
    in_the_way = [*obstacles(environment, current, to), *found.obstacles]
    file = Path(str(environment_path(environments, env)))
    steps: list[UpgradeStep] = []
    if current != to and not in_the_way:
        steps += _first(environments, environment, to)
        steps.append(_edit(file, environment, to))
        steps += upgrade_steps(environment, current, to, found.addons)
    if output is Output.json:
        print_json(
            "UpgradePlan",
            environment=environment.name,
            cluster=environment.cluster_name,
            current=current,
            target=to,
            obstacles=[{"reason": each.reason, "fix": each.fix} for each in in_the_way],
            steps=[{"step": each.name, "what": each.what} for each in steps],
            notes=found.notes,
            notChecked=found.unchecked,
        )
    else:
        _print(environment, env, current, to, in_the_way, steps, found)
    return 1 if in_the_way else _NOT_CHECKED if found.unchecked else 0


def _asked(environment: Environment, profile: str | None, to: str) -> tuple[str, Readiness]:
    account = account_of(environment, profile, "upgrade-plan")
    name = environment.cluster_name
    try:
        cluster = described_cluster(account.ask, name)
    except Unanswered as why:
        raise CommandError(
            f"cluster {name} was not looked at: {why}; or name its version with --from"
        ) from None
    if cluster is None:
        raise CommandError(
            f"there is no cluster {name} in {environment.region}; to plan without it, add --from"
        )
    current = str(cluster["version"])
    if current == to:
        return current, Readiness()
    return current, readiness(account, environment, str(cluster["status"]), to)


def _first(environments: Path, environment: Environment, to: str) -> Iterator[UpgradeStep]:
    """Steps for environments on older versions: mistakes must not be found in production."""
    if not environment.strict:
        return
    behind = []
    for path in (path for paths in environment_files(environments).values() for path in paths):
        other = load_environment(path)[0]
        if (
            other
            and other.name != environment.name
            and other.account != _NOBODY
            and Version(other.cluster.version) < Version(to)
        ):
            behind.append(f"{other.name} is at {other.cluster.version}")
    if behind:
        yield UpgradeStep("before", f"{', '.join(behind)} in their files: they go first")


def _edit(file: Path, environment: Environment, to: str) -> UpgradeStep:
    if environment.cluster.version == to:
        return UpgradeStep("edit", f"nothing: {file} says {to}")
    return UpgradeStep("edit", f'{file}: cluster: {{version: "{to}"}}, then cdk diff -c env={file.stem}')


def _print(
    environment: Environment,
    env: str,
    current: str,
    to: str,
    in_the_way: list[Obstacle],
    steps: list[UpgradeStep],
    found: Readiness,
) -> None:
    out = console()
    if current == to and not in_the_way:
        out.print(f"{environment.cluster_name} runs Kubernetes {to} already", soft_wrap=True)
    elif steps:
        title = f"{environment.name}: Kubernetes {current} to {to}"
        rows = ((str(number), each.name, each.what) for number, each in enumerate(steps, 1))
        out.print(table(title, ("#", "STEP", "WHAT"), rows))
        out.print(f"one command: cdk deploy --all -c env={env}", soft_wrap=True, markup=False)
    days = days_of_support(current, datetime.now(UTC).date())
    if days is not None:
        out.print(f"standard support of {current} ends in {count(days, 'day')}", soft_wrap=True)
    for each in in_the_way:
        out.print(f"in the way: {each.reason}", style="bold red", soft_wrap=True, markup=False)
        out.print(f"    {each.fix}", soft_wrap=True, markup=False)
    for note in found.notes:
        out.print(f"note: {note}", soft_wrap=True, markup=False)
    for line in found.unchecked:
        out.print(f"not checked: {line}", style="yellow", soft_wrap=True, markup=False)
