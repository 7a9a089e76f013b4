"""Confirmation before a command changes a cluster or deletes its leftovers."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from modelyard.cli.workspace import CommandError
from modelyard.spec import Environment

YesOption = Annotated[
    bool, typer.Option("--yes", help="Do not ask. Where `policy` is strict, --confirm is needed instead.")
]
ConfirmOption = Annotated[
    str | None,
    typer.Option("--confirm", metavar="NAME", help="The environment's name: instead of being asked for it."),
]


def confirm(environment: Environment, what: str, *, yes: bool, name: str | None) -> None:
    """Ask for confirmation.

    Raises:
        CommandError: not confirmed.
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
