"""`modelyard schema`: JSON Schema files for completion and validation in editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from modelyard.cli.printing import console, print_json
from modelyard.cli.workspace import (
    CommandError,
    EnvironmentsOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.findings import Finding
from modelyard.project import ENVIRONMENTS
from modelyard.reading import RECORD, read_file
from modelyard.spec.schema import environment_schema, model_schema, pipeline_schema, project_schema
from modelyard.writing import write_file

_HELP = """Print or write JSON Schema for model and environment files, pipeline.yaml and modelyard.yaml.

\b
  modelyard schema --write schemas
  # first line of a model file, for editors with the YAML language server:
  # yaml-language-server: $schema=../schemas/model.schema.json
"""


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(schema)


def schema(
    write: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the files there instead.")] = None,
    env: Annotated[
        str | None,
        typer.Option(
            "--env", "-e", metavar="NAME", help="Offer this environment's pools and secrets as choices."
        ),
    ] = None,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.json,
) -> int:
    environment = readable_environment(environments, env) if env else None
    schemas = {
        "model": model_schema(environment),
        "environment": environment_schema(),
        "pipeline": pipeline_schema(),
        "project": project_schema(),
    }
    if write is None:
        if output is Output.table:
            console().print(
                "\n".join(f"{name}.schema.json  {content['title']}" for name, content in schemas.items())
            )
        else:
            print_json("Schemas", **schemas)
        return 0
    files = {write / f"{name}.schema.json": content for name, content in schemas.items()}
    foreign = [str(path) for path in files if path.exists() and not _written_here(path)]
    if foreign:
        raise CommandError(
            f"nothing was written: {', '.join(foreign)} was not written by modelyard; name another folder"
        )
    for path, content in files.items():
        write_file(path, json.dumps({"$comment": _COMMENT, **content}, indent=2) + "\n")
        console().print(str(path), markup=False, soft_wrap=True)
    return 0


_COMMENT = "Written by `modelyard schema`, which replaces it."


def _written_here(path: Path) -> bool:
    text = read_file(path, RECORD)
    return not isinstance(text, Finding) and _COMMENT in text
