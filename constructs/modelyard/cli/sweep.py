"""`modelyard sweep`: what an environment's cluster has left in the account."""

from __future__ import annotations

from typing import Annotated

import typer

from modelyard.cli.confirmation import ConfirmOption, YesOption, confirm
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
from modelyard.live.api.aws import Account
from modelyard.live.clusters.leftovers import Leftover, delete, find_leftovers
from modelyard.live.eks import described_cluster
from modelyard.project import ENVIRONMENTS
from modelyard.spec import Environment

_HELP = """List what a deleted cluster left in the account, by the tags that Karpenter, the VPC CNI and the controllers of load
balancers and volumes put on what they make. Nothing that a stack owns is listed.

\b
  modelyard sweep --env dev
  modelyard sweep --env dev --delete

While EKS has the cluster, what bears its tags is in use, and this refuses. Volumes hold data: a deleted one is lost. The exit
code is 0 where nothing is left, 1 where something is, or could not be deleted, 64 for misuse.
"""


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(sweep)


def sweep(
    env: EnvOption = "local",
    remove: Annotated[
        bool, typer.Option("--delete", help="Delete what is left, in order, after asking.")
    ] = False,
    yes: YesOption = False,
    confirmed: ConfirmOption = None,
    profile: ProfileOption = None,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.table,
) -> int:
    environment = readable_environment(environments, env)
    if environment.cluster.existing:
        raise CommandError(
            f"cluster {environment.cluster_name} is managed by somebody else, and its tags are on what others use: "
            f"`modelyard drain --env {env}` leaves nothing of {environment.name} there"
        )
    account = account_of(environment, profile, "sweep")
    found = _leftovers(account, environment)
    if output is Output.table:
        _print(environment, found)
    refused: dict[str, str] = {}
    if found and remove:
        confirm(
            environment,
            f"{count(len(found), 'resource')} of {environment.cluster_name} go",
            yes=yes,
            name=confirmed,
        )
        refused = _deleted(account, found)
    left = [each for each in found if not remove or each.id in refused]
    if output is Output.json:
        print_json(
            "Sweep",
            environment=environment.name,
            cluster=environment.cluster_name,
            leftovers=[
                {
                    "kind": each.kind,
                    "id": each.id,
                    "detail": each.detail,
                    "deleted": remove and each.id not in refused,
                    "reason": refused.get(each.id),
                }
                for each in found
            ],
        )
    elif found:
        _print_end(found, left, refused, env)
    return 1 if left else 0


def _leftovers(account: Account, environment: Environment) -> list[Leftover]:
    try:
        if described_cluster(account.ask, environment.cluster_name) is not None:
            raise CommandError(
                f"EKS has cluster {environment.cluster_name}: what bears its tags is in use; first `modelyard drain --env "
                f"{environment.name}` and `cdk destroy`"
            )
        return find_leftovers(account, environment.cluster_name)
    except Unanswered as why:
        raise CommandError(
            f"account {environment.account} does not tell: {why}; nothing was changed"
        ) from None


def _deleted(account: Account, found: list[Leftover]) -> dict[str, str]:
    """Delete as much as possible; returns ids and reasons of the rest."""
    refused = {}
    for each in found:
        try:
            delete(account, each)
        except Unanswered as why:
            refused[each.id] = str(why)
    return refused


def _print(environment: Environment, found: list[Leftover]) -> None:
    if not found:
        console().print(
            f"{environment.name}: nothing bears the tags of cluster {environment.cluster_name}",
            soft_wrap=True,
        )
        return
    title = f"{environment.name}: left over from {environment.cluster_name}"
    console().print(
        table(title, ("KIND", "ID", "WHAT"), ((each.kind, each.id, each.detail or "-") for each in found))
    )


def _print_end(found: list[Leftover], left: list[Leftover], refused: dict[str, str], env: str) -> None:
    out = console()
    if len(left) == len(found) and not refused:
        out.print(f"delete them: modelyard sweep --env {env} --delete", soft_wrap=True, markup=False)
        return
    out.print(f"{len(found) - len(left)} deleted, {len(left)} left", soft_wrap=True)
    for each in left:
        out.print(f"    {each.kind} {each.id}: {refused[each.id]}", soft_wrap=True, markup=False)
    if left:
        out.print(
            "interfaces and groups are free some minutes after what held them is gone: run it again",
            soft_wrap=True,
        )
