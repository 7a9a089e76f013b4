"""The endpoint of `smoke` and `bench`: from the model's file, or from the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from modelyard.cli.completion import model_names
from modelyard.cli.workspace import CommandError
from modelyard.endpoint_tests.endpoint import EndpointAddress
from modelyard.planning import ModelPlan
from modelyard.project import load_project
from modelyard.reading import suggestion
from modelyard.secret_values import shown

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Name of a model in --models.", autocompletion=model_names)
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Of the API, with /v1; default: the Service of --env."),
]
KeyOption = Annotated[
    str,
    typer.Option(
        "--api-key-env", metavar="NAME", help="Environment variable that holds the API key, if any."
    ),
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="Longest wait for one request.", min=0.1)
]
API_KEY = "MODELYARD_API_KEY"


def planned_model(name: str, models: Path, environments: Path, env: str) -> ModelPlan:
    """The plan of model `name` in environment `env`.

    Raises:
        CommandError: the model does not exist, or cannot be planned.
    """
    planned = load_project(env, models, environments).plan()
    found = {plan.name: plan for plan in planned.models} if planned else {}
    if name not in found:
        known = f"planned: {', '.join(found)}" if found else f"run `modelyard validate --env {env}`"
        raise CommandError(f"no model {shown(name)} in environment {env}; {suggestion(name, found)}{known}")
    return found[name]


def target(
    plan: ModelPlan, namespace: str, *, url: str | None, key_variable: str, timeout: float
) -> EndpointAddress:
    """URL and key of the model's endpoint.

    Raises:
        CommandError: the model needs a key and the variable is empty, or the URL is invalid.
    """
    key = os.environ.get(key_variable) or None
    if plan.model.access.api_key and key is None:
        raise CommandError(
            f"{plan.name} wants an API key; put it into the environment variable {key_variable}, or name another "
            "with --api-key-env"
        )
    found = url or f"http://{plan.name}.{namespace}/v1"
    if not found.startswith(("http://", "https://")):
        raise CommandError(
            f"--url {found} is no address; it starts with http:// or https:// and ends with /v1"
        )
    return EndpointAddress(found, key, timeout)
