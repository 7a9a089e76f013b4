"""Optional packages, each needed by only one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from modelyard.cli.workspace import CommandError


@contextmanager
def needed_for(command: str, extra: str) -> Iterator[None]:
    """Context in which packages of `extra` are imported for `modelyard COMMAND`.

    Raises:
        CommandError: a package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed; `modelyard {command}` needs the extra modelyard[{extra}]"
        ) from error
