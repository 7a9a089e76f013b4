"""Packages that a command alone needs, and that are therefore not installed with Modelyard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from modelyard.cli.workspace import CommandError


@contextmanager
def needed_for(command: str, extra: str) -> Iterator[None]:
    """What happens inside imports packages of `extra` for `modelyard COMMAND`.

    Raises:
        CommandError: one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed; `modelyard {command}` needs the extra modelyard[{extra}]"
        ) from error
