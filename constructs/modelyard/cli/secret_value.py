"""Input of a secret's value: never from the command line, and never shown."""

from __future__ import annotations

import getpass
import sys
import warnings
from pathlib import Path

import typer

from modelyard.cli.workspace import CommandError
from modelyard.live.account.secrets import CERTIFICATE_KEYS, MOST_BYTES, SecretKind

_MOST = MOST_BYTES + 4096
"""Maximum bytes read of a value; a value longer than Secrets Manager's limit is then rejected for its
length."""


def refuse_extra(context: typer.Context) -> None:
    """Reject extra arguments without repeating them.

    Raises:
        typer.BadParameter: there are extra arguments.
    """
    if not context.args:
        return
    options = [each.partition("=")[0] for each in context.args if each.startswith("--")]
    raise typer.BadParameter(
        (f"no such option: {', '.join(options)}; " if options else "one NAME and nothing else; ")
        + "a value never stands on the command line: history and `ps` show it. If one did, make a new one"
    )


def typed_value(name: str, kind: SecretKind, file: Path | None) -> str:
    """The value to store, from the file, standard input or a prompt.

    Raises:
        CommandError: it cannot be read, or is not text.
    """
    try:
        if file is not None:
            with file.open("rb") as opened:  # may be a pipe, such as a shell's `<(...)`
                return opened.read(_MOST).decode()
        if not sys.stdin.isatty():
            return sys.stdin.buffer.read(_MOST).decode()
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{name}: the value is no UTF-8 text; nothing was changed") from None
    if kind == "certificate":
        raise CommandError(
            f"{name} is a certificate, JSON with {' and '.join(CERTIFICATE_KEYS)}: give it on standard input or with --from-file"
        )
    with warnings.catch_warnings():
        # getpass would warn and then echo the input.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(f"Value of {name}: ")
        except getpass.GetPassWarning:
            raise CommandError(
                "this terminal shows what is typed; use standard input or --from-file"
            ) from None
        except EOFError:
            return ""
