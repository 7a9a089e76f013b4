"""`modelyard doctor`: does the account have what a deploy depends on?"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from modelyard.cli.connections import ContextOption, ProfileOption, connected, opened
from modelyard.cli.printing import console, count, finding_json, print_findings, print_json, table
from modelyard.cli.workspace import (
    CommandError,
    EnvironmentsOption,
    EnvOption,
    ModelsOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.live.account.deploy_policy import deploy_policy
from modelyard.live.account.preflight import examine, policy
from modelyard.live.api.answers import Unreachable, WrongContext
from modelyard.live.clusters.inventory import CHECK, examine_cluster
from modelyard.live.diagnosis import Case, Diagnosis, Health, unknown
from modelyard.planning import Plan
from modelyard.project import ENVIRONMENTS, MODELS, environment_path, load_project

_HELP = """Ask the environment's account for what a deploy relies on, and change nothing: credentials, quotas, zones
of instance types, spot, reservations, secrets, Kubernetes and add-ons, subnets, CDK's bootstrap, the cache. A cluster that
somebody else manages (`cluster.existing`) is asked what it has, through its context in the kubeconfig.

\b
  modelyard doctor --env prod
  modelyard doctor --env prod --output json | jq '.results[] | select(.result == "problem")'
  modelyard doctor --policy        the IAM policy that lets it ask everything
  modelyard doctor --env prod --deploy-policy      the one for cdk bootstrap --cloudformation-execution-policies

A call that IAM denies leaves its check open and names the permission; the others go on. The exit code is 0 where all is
well, 1 where there is a problem, 2 where there is none and something could not be checked, 64 for misuse.
"""
_NOT_CHECKED = 2


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(doctor)


def doctor(
    env: EnvOption = "local",
    profile: ProfileOption = None,
    context: ContextOption = None,
    show_policy: Annotated[
        bool, typer.Option("--policy", help="Print the IAM policy that the checks need, and ask nothing.")
    ] = False,
    show_deploy_policy: Annotated[
        bool,
        typer.Option(
            "--deploy-policy",
            help="Print the policy of CloudFormation's role, for cdk bootstrap, and ask nothing.",
        ),
    ] = False,
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.table,
) -> int:
    if show_policy:
        sys.stdout.write(json.dumps(policy(), indent=2) + "\n")
        return 0
    if show_deploy_policy:
        document = deploy_policy(readable_environment(environments, env))
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return 0
    project = load_project(env, models, environments)
    planned = project.plan()
    if planned is None:
        if output is Output.json:
            print_json("Doctor", environment=env, findings=[finding_json(f) for f in project.findings])
        else:
            print_findings(project.findings)
        return 1
    account = opened(planned.environment.region, profile, "doctor")
    file = str(environment_path(environments, env))
    case = Case(planned.environment, planned, datetime.now(UTC), env, file)
    results = examine(account, case)
    if planned.environment.cluster.existing:
        results += _contents(case, context)
    if output is Output.json:
        _print_json(planned, results)
    else:
        _print(planned, results)
    if not planned.deployable:
        console(stderr=True).print(
            f"the plan has errors, so its bill may lack models: modelyard plan --env {env}", soft_wrap=True
        )
    healths = {result.health for result in results}
    return 1 if Health.PROBLEM in healths else _NOT_CHECKED if Health.UNKNOWN in healths else 0


def _contents(case: Case, context: str | None) -> tuple[Diagnosis, ...]:
    try:
        cluster = connected(case.environment, context, "doctor")
    except WrongContext as why:
        raise CommandError(str(why)) from None
    except Unreachable as why:
        return (replace(unknown("", str(why)), check=CHECK),)
    return examine_cluster(cluster, case)


def _print_json(planned: Plan, results: tuple[Diagnosis, ...]) -> None:
    environment = planned.environment
    print_json(
        "Doctor",
        environment=environment.name,
        account=environment.account,
        region=environment.region,
        passed=all(result.health is Health.OK for result in results),
        results=[
            {
                "check": result.check,
                "subject": result.subject or None,
                "result": str(result.health),
                "reason": result.reason,
                "fix": result.fix or None,
            }
            for result in results
        ],
    )


def _print(planned: Plan, results: tuple[Diagnosis, ...]) -> None:
    environment = planned.environment
    out = console()
    out.print(
        table(
            f"{environment.name}: account {environment.account}, {environment.region}",
            ("CHECK", "SUBJECT", "RESULT", "WHAT"),
            ((each.check, each.subject or "-", str(each.health), each.reason) for each in results),
        )
    )
    problems = [each for each in results if each.health is Health.PROBLEM]
    for each in problems:
        out.print(
            f"{each.check} {each.subject}: {each.reason}", style="bold red", soft_wrap=True, markup=False
        )
        for line in each.fix.splitlines():
            out.print(f"    {line}", soft_wrap=True, markup=False)
    healths = [each.health for each in results]
    out.print(
        f"{count(len(problems), 'problem')}, {healths.count(Health.OK)} ok, "
        f"{healths.count(Health.UNKNOWN)} not checked"
    )
