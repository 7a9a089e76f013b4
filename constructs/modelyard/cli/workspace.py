"""The folders that a command works on, and what it reads from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from modelyard.findings import Finding, Location
from modelyard.hardware.prices import prices_path, put_in_force, read_prices
from modelyard.planning import Plan, plan
from modelyard.reading import CONFIG, PRICES, NotJson, parse_json, read_file
from modelyard.secret_values import shown
from modelyard.spec import Catalogue, Environment, load_catalogue, load_environment
from modelyard.spec.folders import environment_files
from modelyard.spec.yaml_source import Source


class CommandError(Exception):
    """The command cannot do its work; the text says why and what to do."""


class Output(StrEnum):
    table = "table"
    json = "json"


EnvOption = Annotated[
    str,
    typer.Option(
        "--env",
        "-e",
        metavar="NAME",
        help="Environment: NAME.yaml in --environments.",
        envvar="MODELYARD_ENV",
    ),
]
ModelsOption = Annotated[
    Path, typer.Option("--models", metavar="DIR", help="Folder with one YAML file a model.", file_okay=False)
]
EnvironmentsOption = Annotated[
    Path, typer.Option("--environments", metavar="DIR", help="Folder with one YAML file an environment.")
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table for people, json for programs.")]

MODELS = Path("models")
ENVIRONMENTS = Path("environments")


@dataclass(frozen=True)
class Workspace:
    """An environment, or the findings that say why there is none, beside a catalogue."""

    catalogue: Catalogue
    environment: Environment | None
    findings: tuple[Finding, ...]
    source: Source | None = None

    def plan(self) -> Plan | None:
        """The plan; None when the environment cannot be read."""
        return (
            plan(self.catalogue, self.environment, self.findings, self.source) if self.environment else None
        )


def apart_from_inputs(folder: Path, models: Path, environments: Path) -> None:
    """Refuse an output folder that is, holds or lies in one that people write.

    Raises:
        CommandError: it does.
    """
    there = folder.resolve()
    inputs = (("models", models), ("environments", environments), ("charts", Path("charts")))
    for name, written in ((name, path.resolve()) for name, path in inputs):
        if there.is_relative_to(written) or written.is_relative_to(there):
            raise CommandError(
                f"nothing was written: {folder} and the folder of the {name}, {written}, lie in each other; name another "
                "folder with --out"
            )


def environment_path(folder: Path, name: str) -> Path | Finding:
    """The file of environment `name`, or the finding that lists the ones there are."""
    files = environment_files(folder)
    found = files.get(name, [])
    if len(found) == 1:
        return found[0]
    if found:
        both = " and ".join(path.name for path in found)
        return Finding(
            "SPEC004",
            f"environment '{name}' stands in {both}",
            "delete or rename one of them",
            Location(str(found[0])),
        )
    return Finding(
        "ENV002",
        f"no environment {shown(name)}",
        f"use one of {', '.join(sorted(files))}" if files else f"create {folder / f'{name}.yaml'}",
        Location(str(folder)),
    )


def open_workspace(models: Path, environments: Path, env: str) -> Workspace:
    """Read everything; problems become findings."""
    return open_environment(*load_catalogue(models), environments, env)


def open_environment(
    catalogue: Catalogue, findings: Iterable[Finding], environments: Path, env: str
) -> Workspace:
    """Environment `env` beside models that were read already, and their `findings`."""
    path = environment_path(environments, env)
    if isinstance(path, Finding):
        return Workspace(catalogue, None, (*findings, path))
    environment, source, problems = load_environment(path)
    if environment is not None and (wrong := use_prices(environments, environment.region)):
        return Workspace(catalogue, None, (*findings, *problems, wrong), source)
    return Workspace(catalogue, environment, (*findings, *problems), source)


def use_prices(environments: Path, region: str) -> Finding | None:
    """Put the prices of `region` in force that lie beside the environments; the finding where they cannot be read."""
    path = prices_path(environments, region)
    put_in_force(region, None)
    if not path.exists():
        return None
    text = read_file(path, PRICES)
    if isinstance(text, Finding):
        return text
    try:
        put_in_force(region, read_prices(text, region))
    except ValueError as problem:
        return Finding(
            "SPEC003",
            f"no prices of {region} can be read: {problem}",
            f"write it anew: modelyard catalog refresh --region {region}; or delete it, and the shipped prices count",
            Location(str(path)),
        )
    return None


def readable_environment(folder: Path, name: str) -> Environment:
    """Environment `name` for a command that only looks something up in it.

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


def prices_of(environments: Path, region: str) -> None:
    """As `use_prices`, for a command that prints no findings.

    Raises:
        CommandError: they cannot be read.
    """
    if wrong := use_prices(environments, region):
        raise CommandError(str(wrong))


def read_config_file(path: Path) -> dict[str, Any] | Finding:
    """What a `config.json` at `path` says, or why it says nothing."""
    fix = "give the checkpoint's own config.json"
    text = read_file(path, CONFIG)
    if isinstance(text, Finding):
        return text
    try:
        config = parse_json(text, repeated_keys=True)
    except NotJson as problem:
        return Finding("YAML001", f"{path} is not JSON: {problem}", fix)
    return config if isinstance(config, dict) else Finding("YAML001", f"{path} is not an object", fix)
