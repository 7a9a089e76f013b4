"""The folders that a command uses, and reading from them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from modelyard.charts import SETTINGS
from modelyard.cli.completion import environment_names
from modelyard.failure import Failure
from modelyard.findings import Finding
from modelyard.hardware import Prices
from modelyard.project import ENVIRONMENTS, environment_path, region_prices
from modelyard.reading import CONFIG, NotJson, parse_json, read_file, suggestion
from modelyard.spec import Environment, load_environment
from modelyard.spec.folders import environment_files
from modelyard.spec.loading import load_settings


class CommandError(Failure):
    """The command cannot run; the text says why and what to do."""


class Output(StrEnum):
    table = "table"
    json = "json"


def _chosen(context: typer.Context, name: str) -> str:
    """`name` if it was stated or exists, else the only environment, else the one that a person picks."""
    known = sorted(environment_files(context.params.get("environments", ENVIRONMENTS)))
    if context.resilient_parsing or _is_stated(context, "env") or name in known or not known:
        return name
    if len(known) == 1:
        return known[0]
    if _somebody_is_there():
        return str(typer.prompt(f"Environment ({', '.join(known)})", value_proc=_one_of(known), err=True))
    raise typer.BadParameter(f"name an environment with --env: {', '.join(known)}")


def _somebody_is_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _one_of(known: list[str]) -> Callable[[str], str]:
    def checked(word: str) -> str:
        if word not in known:  # typer asks again
            raise typer.BadParameter(f"{suggestion(word, known)}there are {', '.join(known)}")
        return word

    return checked


def _is_stated(context: typer.Context, parameter: str) -> bool:
    source = context.get_parameter_source(parameter)
    return source is not None and source.name != "DEFAULT"


EnvOption = Annotated[
    str,
    typer.Option(
        "--env",
        "-e",
        metavar="NAME",
        help="Environment: NAME.yaml in --environments; default: local, or the only one.",
        envvar="MODELYARD_ENV",
        show_default=False,
        callback=_chosen,
        autocompletion=environment_names,
    ),
]
ModelsOption = Annotated[
    Path, typer.Option("--models", metavar="DIR", help="Folder with one YAML file a model.", file_okay=False)
]
EnvironmentsOption = Annotated[
    Path,
    typer.Option(
        "--environments",
        metavar="DIR",
        help="Folder with one YAML file an environment.",
        is_eager=True,  # --env looks into it
    ),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table for people, json for programs.")]


def apart_from_inputs(folder: Path, models: Path, environments: Path) -> None:
    """Refuse an output folder that is, contains or lies in an input folder.

    Raises:
        CommandError: it is, contains or lies in one.
    """
    there = folder.resolve()
    settings, _ = load_settings(SETTINGS)
    charts = [("charts", Path(settings.charts))] if settings and settings.charts else []
    inputs = [("models", models), ("environments", environments), *charts]
    for name, written in ((name, path.resolve()) for name, path in inputs):
        if there.is_relative_to(written) or written.is_relative_to(there):
            raise CommandError(
                f"nothing was written: {folder} and the folder of the {name}, {written}, lie in each other; name another "
                "folder with --out"
            )


def readable_environment(folder: Path, name: str) -> Environment:
    """Environment `name`, for commands that only look something up in it.

    Raises:
        typer.BadParameter: it cannot be read.
    """
    path = environment_path(folder, name)
    environment = None if isinstance(path, Finding) else load_environment(path)[0]
    if environment is None:
        raise typer.BadParameter(
            f"environment '{name}' cannot be read; run `modelyard validate --env {name}`"
        )
    return environment


def prices_of(environments: Path, region: str) -> Prices:
    """Like `region_prices`, for a command that prints no findings.

    Raises:
        CommandError: they cannot be read.
    """
    found = region_prices(environments, region)
    if isinstance(found, Finding):
        raise CommandError(str(found))
    return found


def read_config_file(path: Path) -> dict[str, Any] | Finding:
    """Content of the `config.json` at `path`, or why it cannot be read."""
    fix = "give the checkpoint's own config.json"
    text = read_file(path, CONFIG)
    if isinstance(text, Finding):
        return text
    try:
        config = parse_json(text, repeated_keys=True)
    except NotJson as problem:
        return Finding("YAML001", f"{path} is not JSON: {problem}", fix)
    return config if isinstance(config, dict) else Finding("YAML001", f"{path} is not an object", fix)
