"""The cluster behind an environment, for commands that ask or change one; and the word that lets them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from modelyard.cli.workspace import CommandError
from modelyard.operations.cluster import Cluster, Unreachable, connect
from modelyard.spec import Environment

ContextOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Context of the kubeconfig; default: the one of the environment's cluster, by its ARN.",
    ),
]
YesOption = Annotated[
    bool, typer.Option("--yes", help="Do not ask. Where `policy` is strict, --confirm is needed instead.")
]
ConfirmOption = Annotated[
    str | None,
    typer.Option("--confirm", metavar="NAME", help="The environment's name: instead of being asked for it."),
]


def connected(environment: Environment, context: str | None, command: str) -> Cluster:
    """The environment's cluster.

    Raises:
        CommandError: lightkube is not installed.
        Unreachable: the kubeconfig has no context of it.
    """
    try:
        return connect(environment, context)
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed; `modelyard {command}` needs the extra modelyard[cluster]"
        ) from error


def cluster_of(environment: Environment, context: str | None, command: str) -> Cluster:
    """As `connected`, for a command that can do nothing without it.

    Raises:
        CommandError: there is none.
    """
    try:
        return connected(environment, context, command)
    except Unreachable as why:
        raise CommandError(str(why)) from None


def confirm(environment: Environment, what: str, *, yes: bool, name: str | None) -> None:
    """Let somebody who means it go on.

    Raises:
        CommandError: it was not confirmed.
    """
    if name is None and yes:
        if not environment.strict:
            return
        raise CommandError(
            f"{environment.name} has `policy: strict`, so --yes is not enough; add --confirm {environment.name}"
        )
    if name is None:
        if not sys.stdin.isatty():
            raise CommandError(f"nobody can be asked here; add --confirm {environment.name}")
        name = typer.prompt(f"{what}. Type the environment's name to go on", err=True)
    if name != environment.name:
        raise CommandError(f"'{name}' is not {environment.name}; nothing was changed")
