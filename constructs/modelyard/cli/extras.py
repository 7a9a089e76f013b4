"""Packages that a command alone needs, and that are therefore not installed with Modelyard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from modelyard.cli.workspace import CommandError


@contextmanager
def needed_for(what: str, extra: str) -> Iterator[None]:
    """What happens inside imports packages of `extra` for `what`: a command or an option as it is written.

    Raises:
        CommandError: one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed; `{what}` needs the extra modelyard[{extra}]"
        ) from error
