"""Optional packages, each needed by only one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from modelyard.cli.workspace import CommandError


@contextmanager
def needed_for(what: str, extra: str) -> Iterator[None]:
    """Context in which packages of `extra` are imported for `what`: a command or an option, as typed.

    Raises:
        CommandError: a package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed; `{what}` needs the extra modelyard[{extra}]"
        ) from error
