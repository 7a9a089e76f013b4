"""Entry point: the typer application."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from modelyard.cli.commands import Commands, show_help
from modelyard.cli.exit_codes import EX_USAGE, INTERRUPTED
from modelyard.failure import Failure
from modelyard.secret_values import mask, random_values

_NO_COLOR = "--no-color"

app = typer.Typer(
    name="modelyard",
    help="LLM inference on Amazon EKS as code: three lines of YAML to a planned, priced and deployed endpoint.",
    invoke_without_command=True,
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"modelyard {version('modelyard')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    no_color: Annotated[
        bool, typer.Option(_NO_COLOR, help="No colours, as with NO_COLOR=1; also after the command.")
    ] = False,
) -> None:
    if no_color:
        os.environ["NO_COLOR"] = "1"
    show_help(context)


@cache
def _command() -> Any:
    return typer.main.get_command(app)


def _end_without_output(error: OSError) -> NoReturn:
    """Exit when standard output, or a file, can no longer be written or read."""
    if not isinstance(error, BrokenPipeError):  # e.g. `| head` has exited
        where = f"{error.filename}: " if error.filename else ""
        with suppress(OSError):
            typer.echo(f"modelyard: {mask(where)}{error.strerror or error}", err=True)
    # At exit, Python would try to flush its buffer and report an error.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)


def _as_typed(text: str) -> str:
    """An error message about the command line, with known and random-looking secrets masked."""
    bare = mask(text)
    for sighting in reversed(random_values(bare)):
        bare = bare[: sighting.start] + sighting.shown + bare[sighting.end :]
    return bare


def _colours_first(words: list[str]) -> list[str]:
    """`words` with a `--no-color` that stands behind the command in front of it, where it is an option."""
    end = words.index("--") if "--" in words else len(words)
    if _NO_COLOR not in words[:end]:
        return words
    return [_NO_COLOR, *(word for word in words[:end] if word != _NO_COLOR), *words[end:]]


def main() -> None:
    """Run the command and exit with its code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files may not be valid text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _command().main(_colours_first(sys.argv[1:]), prog_name="modelyard", standalone_mode=False)
        sys.stdout.flush()
    except Failure as error:
        typer.echo(f"modelyard: {mask(str(error))}", err=True)
        sys.exit(1)
    except OSError as error:
        _end_without_output(error)
    except typer.TyperException as error:
        # The message repeats the input, and people type keys in the wrong place.
        typer.echo(f"modelyard: {_as_typed(str(error))} (modelyard --help lists the commands)", err=True)
        sys.exit(EX_USAGE)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)
