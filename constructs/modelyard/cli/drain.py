"""`modelyard drain`: empty an environment's cluster, so that its stacks can be destroyed."""

from __future__ import annotations

from typing import Annotated

import typer

from modelyard.cli.confirmation import ConfirmOption, YesOption, confirm
from modelyard.cli.connections import ContextOption, cluster_of
from modelyard.cli.printing import console
from modelyard.cli.workspace import CommandError, EnvironmentsOption, EnvOption, readable_environment
from modelyard.live.api.answers import Silent, Unreachable
from modelyard.live.api.kubernetes import LiveCluster
from modelyard.live.clusters.drain import ClusterDrain, StillThere
from modelyard.live.clusters.obstruction import reasons
from modelyard.live.clusters.private_api import tunnel_commands
from modelyard.live.clusters.withdrawal import left_definitions
from modelyard.names import FLUX_NAMESPACE
from modelyard.project import ENVIRONMENTS
from modelyard.spec import Environment

_HELP = """Empty an environment's cluster in the order that leaves nothing behind: delivery is suspended, models end their
requests, load balancers go, Karpenter gives every node back, and the controllers are uninstalled, Karpenter last. Of a
cluster that somebody else manages (`cluster.existing`), only what Modelyard has made goes.

\b
  modelyard drain --env dev --yes
  modelyard drain --env prod --confirm prod

It waits for each step. What does not go stops it, with its finalizers and what to look at; begun again, it goes on there. The
exit code is 0 when the cluster is empty, 1 when something stayed or the cluster refused, 64 for misuse.
"""
POLL_S = 5.0


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(drain)


def drain(
    env: EnvOption = "local",
    context: ContextOption = None,
    yes: YesOption = False,
    confirmed: ConfirmOption = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES",
            min=0,
            help="Longest wait for one step; default: half an hour for nodes, else ten minutes.",
        ),
    ] = None,
    environments: EnvironmentsOption = ENVIRONMENTS,
) -> int:
    environment = readable_environment(environments, env)
    cluster = cluster_of(environment, context, "drain")
    stays = environment.cluster.existing is not None
    whose = f"of {environment.name} in" if stays else "of"
    confirm(
        environment,
        f"Every model, node and load balancer {whose} {environment.cluster_name} goes",
        yes=yes,
        name=confirmed,
    )
    out = console()
    work = ClusterDrain(
        cluster,
        say=lambda line: out.print(line, soft_wrap=True, markup=False),
        within_s=None if timeout is None else timeout * 60,
        every_s=POLL_S,
    )
    try:
        work.run(environment)
    except StillThere as problem:
        _print_left(cluster, problem, env)
        return 1
    except Silent as why:
        raise CommandError(f"{why}{_way_in(environment)}") from None
    except Unreachable as why:
        raise CommandError(f"{why}; run it again when that is mended, it goes on where it stopped") from None
    after = [f"modelyard sweep --env {env}           when they are gone: is anything left over?"]
    if stays:
        out.print(
            f"nothing of {environment.name} is left in {environment.cluster_name}. Next:", soft_wrap=True
        )
        after = _last_words(cluster, environment)
    else:
        out.print(f"{environment.cluster_name} is empty. Next:", soft_wrap=True)
    for line in (
        f"modelyard destroy-plan --env {env}    what is protected, and what stays",
        f"cdk destroy --all -c env={env}        Delivery first, Network last",
        *after,
    ):
        out.print(f"    {line}", soft_wrap=True, markup=False)
    return 0


def _last_words(cluster: LiveCluster, environment: Environment) -> list[str]:
    """What is deleted by hand in a cluster that stays: who uses the CRDs by now is known to nobody here."""
    lines = [f"kubectl delete namespace {FLUX_NAMESPACE}"] if environment.delivery == "flux" else []
    try:
        definitions = left_definitions(cluster, environment)
    except Unreachable as why:
        return [*lines, f"# the CRDs that add-ons have brought: {why}"]
    if definitions:
        lines += [
            "# CRDs that the add-ons have brought; each takes all objects of its kind along, whoever made them:",
            f"kubectl delete crd {' '.join(definitions)}",
        ]
    return lines


def _way_in(environment: Environment) -> str:
    """What to do about an API server that does not answer here."""
    if environment.cluster.public_access_cidrs:
        return ""
    commands = tunnel_commands(environment)
    if not commands:
        return "\nits API server is private, and nodes of EKS Auto Mode forward no ports: run this inside of its VPC"
    return "\n".join(
        (
            "",
            "its API server is private. From outside of its VPC, with the Session Manager plugin, in a shell that stays open:",
            f"    {commands[0]}",
            "and here, before it is run again:",
            f"    {commands[1]}",
        )
    )


def _print_left(cluster: LiveCluster, problem: StillThere, env: str) -> None:
    out = console(stderr=True)
    out.print(
        f"refuses to go on after step '{problem.step.name}': still there", style="bold red", soft_wrap=True
    )
    for item in problem.left:
        finalizers = f" (finalizers: {', '.join(item.finalizers)})" if item.finalizers else ""
        out.print(f"    {item}{finalizers}", soft_wrap=True, markup=False)
        for reason in reasons(cluster, item):
            out.print(f"        {reason}", soft_wrap=True, markup=False)
    out.print(
        f"nothing after it was begun, and the stacks must not be destroyed yet; then: modelyard drain --env {env}",
        soft_wrap=True,
        markup=False,
    )
