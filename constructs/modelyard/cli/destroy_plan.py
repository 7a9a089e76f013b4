"""`modelyard destroy-plan`: what would be deleted, in which order, and whether the stacks may go now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import typer

from modelyard.cli.connections import ContextOption, ProfileOption, account_of, connected
from modelyard.cli.printing import console, count, print_json, table
from modelyard.cli.workspace import (
    CommandError,
    EnvironmentsOption,
    EnvOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.live.api.answers import Unanswered, Unreachable, WrongContext
from modelyard.live.api.aws import Account
from modelyard.live.api.kubernetes import Item, named
from modelyard.live.clusters.drain import steps
from modelyard.live.clusters.drain_steps import DrainStep
from modelyard.live.clusters.leftovers import Leftover, find_leftovers
from modelyard.live.eks import described_cluster
from modelyard.live.stacks import DestroyableStack, destroyable_stacks
from modelyard.project import ENVIRONMENTS
from modelyard.spec import Environment

_HELP = """Show what goes when an environment is taken down, in order: objects of the cluster, stacks, and what is left over.
Nothing is changed.

\b
  modelyard destroy-plan --env dev
  modelyard destroy-plan --env prod --output json | jq '.refuses'

The exit code is 0 where the stacks may be destroyed; 1 while nodes, node classes or load balancers exist, which would stay
behind and cost money: `modelyard drain` takes them away first; 2 where not everything could be checked; 64 for misuse.
"""
_NOT_CHECKED = 2


@dataclass
class _Plan:
    """The result. `leftovers` is None while the cluster exists: resources with its tags are then in use."""

    environment: Environment
    cluster: dict[str, Any] | None = None
    steps: list[tuple[DrainStep, list[Item]]] = field(default_factory=list)
    stacks: list[DestroyableStack] = field(default_factory=list)
    leftovers: list[Leftover] | None = None
    unchecked: list[str] = field(default_factory=list)

    @property
    def refuses(self) -> list[Item]:
        return [item for step, items in self.steps if step.costly for item in items]

    @property
    def protected(self) -> bool:
        """Whether EKS refuses to delete the cluster."""
        stays = self.environment.cluster.existing is not None
        return bool(self.cluster and self.cluster.get("deletionProtection")) and not stays

    @property
    def exit_code(self) -> int:
        return 1 if self.refuses else _NOT_CHECKED if self.unchecked else 0


def register(app: typer.Typer) -> None:
    app.command("destroy-plan", help=_HELP)(destroy_plan)


def destroy_plan(
    env: EnvOption = "local",
    context: ContextOption = None,
    profile: ProfileOption = None,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.table,
) -> int:
    environment = readable_environment(environments, env)
    account = account_of(environment, profile, "destroy-plan")
    plan = _Plan(environment)
    _ask_account(plan, account)
    if plan.cluster is not None:
        _ask_cluster(plan, context)
    if output is Output.json:
        _print_json(plan)
    else:
        _print(plan, env)
    return plan.exit_code


def _ask_account(plan: _Plan, account: Account) -> None:
    try:
        plan.cluster = described_cluster(account.ask, plan.environment.cluster_name)
        if plan.cluster is None:
            plan.leftovers = find_leftovers(account, plan.environment.cluster_name)
    except Unanswered as why:
        plan.unchecked.append(f"the cluster and what it left: {why}")
    try:
        plan.stacks = destroyable_stacks(account.ask, plan.environment.name)
    except Unanswered as why:
        plan.unchecked.append(f"stacks: {why}")


def _ask_cluster(plan: _Plan, context: str | None) -> None:
    try:
        cluster = connected(plan.environment, context, "destroy-plan")
    except WrongContext as why:
        raise CommandError(str(why)) from None
    except Unreachable as why:
        plan.unchecked.append(f"objects of the cluster: {why}")
        return
    for step in steps(plan.environment):
        try:
            plan.steps.append((step, step.left(cluster)))
        except Unreachable as why:
            plan.unchecked.append(f"{step.name}: {why}")


def _print_json(plan: _Plan) -> None:
    print_json(
        "DestroyPlan",
        environment=plan.environment.name,
        cluster=plan.environment.cluster_name,
        exists=plan.cluster is not None,
        deletionProtection=plan.protected,
        steps=[
            {
                "step": step.name,
                "why": step.why,
                "action": step.action,
                "objects": [_object_json(item) for item in items],
            }
            for step, items in plan.steps
        ],
        refuses=[str(item) for item in plan.refuses],
        stacks=[
            {
                "name": stack.name,
                "status": stack.status,
                "terminationProtection": stack.protected,
                "retains": list(stack.kept),
            }
            for stack in plan.stacks
        ],
        leftovers=None
        if plan.leftovers is None
        else [{"kind": each.kind, "id": each.id, "detail": each.detail} for each in plan.leftovers],
        notChecked=plan.unchecked,
    )


def _object_json(item: Item) -> dict[str, Any]:
    return {
        "kind": item.kind.name,
        "namespace": item.namespace or None,
        "name": item.name,
        "finalizers": list(item.finalizers),
    }


def _print(plan: _Plan, env: str) -> None:
    environment, out = plan.environment, console()
    if plan.steps:
        steps_left = (
            (str(number), step.name, step.action, str(len(items)), named(items) or "-")
            for number, (step, items) in enumerate(plan.steps, 1)
        )
        title = f"{environment.name}: cluster {environment.cluster_name}, emptied by `modelyard drain --env {env}`"
        out.print(table(title, ("#", "STEP", "HOW", "COUNT", "FIRST"), steps_left, right=("COUNT",)))
    elif plan.cluster is None and not plan.unchecked:
        out.print(f"{environment.name}: there is no cluster {environment.cluster_name}", soft_wrap=True)
    if plan.stacks:
        stacks = (
            (each.name, each.status, "on" if each.protected else "off", ", ".join(each.kept) or "-")
            for each in plan.stacks
        )
        title = f"stacks, in the order of `cdk destroy --all -c env={env}`"
        out.print(table(title, ("STACK", "STATUS", "TERMINATION PROTECTION", "STAYS BEHIND"), stacks))
    if plan.leftovers:
        things = ((each.kind, each.id, each.detail) for each in plan.leftovers)
        out.print(table(f"left over: `modelyard sweep --env {env}`", ("KIND", "ID", "WHAT"), things))
    for line in _protections(plan):
        out.print(line, soft_wrap=True, markup=False)
    for line in plan.unchecked:
        out.print(f"not checked: {line}", style="yellow", soft_wrap=True, markup=False)
    _print_verdict(plan, env)


def _protections(plan: _Plan) -> list[str]:
    region = plan.environment.region
    lines = [
        "aws cloudformation update-termination-protection --no-enable-termination-protection "
        f"--stack-name {stack.name} --region {region}"
        for stack in plan.stacks
        if stack.protected
    ]
    if plan.protected:
        lines.append(
            "aws eks update-cluster-config --no-deletion-protection "
            f"--name {plan.environment.cluster_name} --region {region}"
        )
    return ["protected; these commands switch that off:", *(f"    {line}" for line in lines)] if lines else []


def _print_verdict(plan: _Plan, env: str) -> None:
    out = console()
    if refused := plan.refuses:
        out.print(
            f"refuses: the stacks must not be destroyed yet, {count(len(refused), 'object')} of the cluster would leave "
            f"nodes or load balancers behind; run `modelyard drain --env {env}`",
            style="bold red",
            soft_wrap=True,
            markup=False,
        )
        for item in refused:
            finalizers = f" (finalizers: {', '.join(item.finalizers)})" if item.finalizers else ""
            out.print(f"    {item}{finalizers}", soft_wrap=True, markup=False)
    elif plan.unchecked:
        out.print("not everything was checked: nodes may be left behind", style="yellow", soft_wrap=True)
    elif plan.stacks:
        out.print(
            f"the stacks may be destroyed: cdk destroy --all -c env={env}", soft_wrap=True, markup=False
        )
    else:
        out.print("there are no stacks", soft_wrap=True)
