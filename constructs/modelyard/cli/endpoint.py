"""`modelyard endpoint`: how to call a model that is deployed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from modelyard.cli.call_examples import curl, key_command, python
from modelyard.cli.endpoints import ModelArgument, planned_model
from modelyard.cli.printing import console, print_json, seconds, table
from modelyard.cli.workspace import (
    CommandError,
    EnvironmentsOption,
    EnvOption,
    ModelsOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.objects.traffic.addresses import Address, addresses
from modelyard.planning import ModelPlan
from modelyard.project import ENVIRONMENTS, MODELS
from modelyard.spec import Environment

_HELP = """Show how to call a model: addresses, names, key, and a first request for curl and for Python.

\b
  modelyard endpoint qwen3-32b-fp8 --env prod
  modelyard endpoint qwen3-32b-fp8 --env prod --from cluster
  modelyard endpoint qwen3-32b-fp8 --env prod --output json | jq -r .examples.python

Nothing is called, and no key is shown: the commands read it from AWS Secrets Manager.
"""

_API = {
    "generate": "chat completions",
    "embed": "embeddings",
    "rerank": "reranking, as Jina's and Cohere's API",
}


def register(app: typer.Typer) -> None:
    app.command(name="endpoint", help=_HELP)(endpoint)


def endpoint(
    model: ModelArgument,
    env: EnvOption = "local",
    way: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="WAY",
            help="Of the examples: cluster, forward, gateway or litellm; default: the gateway if the model has one, "
            "else a port-forward.",
        ),
    ] = None,
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.table,
) -> int:
    environment = readable_environment(environments, env)
    plan = planned_model(model, models, environments, env)
    if plan.model.batch:
        raise CommandError(
            f"{plan.name} is a batch and has no endpoint: it reads {plan.model.batch.input} and writes "
            f"{plan.model.batch.output}"
        )
    known = addresses(plan, environment)
    chosen = _chosen(known, way)
    before = [
        *((chosen.first,) if chosen.first else ()),
        *(
            (key_command(environment.secrets[chosen.secret], environment.region),)
            if chosen.secret in environment.secrets
            else ()
        ),
    ]
    examples = {"curl": curl(chosen, plan.model.task), "python": python(chosen, plan.model.task)}
    absences = _absences(plan, environment)
    if output is Output.json:
        print_json("Endpoint", **_json(plan, environment, known, absences, {"before": before, **examples}))
    else:
        _print(plan, environment, known, absences)
        _print_examples(before, examples)
    return 0


def _chosen(known: tuple[Address, ...], way: str | None) -> Address:
    by_way: dict[str, Address] = {
        each.way: each for each in known
    }  # the last LiteLLM address is the outer one
    if way is None:
        return by_way.get("gateway") or by_way["forward"]
    if way not in by_way:
        raise typer.BadParameter(f"--from {way} is no way to this model; it has {', '.join(by_way)}")
    return by_way[way]


def _absences(plan: ModelPlan, environment: Environment) -> list[str]:
    """When nobody answers, and what a caller then gets."""
    found = []
    if plan.model.scaling.activator:
        found.append(
            "Scaled to zero when nobody asks. A request through LiteLLM then fails with status 500 (Connection error) and "
            f"starts a replica, which takes about {seconds(plan.startup.cold)}: repeat it until then. Other ways wake nobody."
        )
    elif not plan.model.replicas.min:
        found.append("Without replicas outside the hours of scaling.schedule: connections are then refused.")
    if environment.office_hours:
        found.append("Without replicas outside the environment's office hours: connections are then refused.")
    return found


def _print(
    plan: ModelPlan, environment: Environment, known: tuple[Address, ...], absences: list[str]
) -> None:
    out = console()
    keyed = any(address.secret for address in known)
    columns = ("FROM", "URL", "MODEL", *(("KEY",) if keyed else ()), "WHO MAY CALL")
    rows = [
        (each.way, each.url, each.model, *((each.secret or "none",) if keyed else ()), each.callers)
        for each in known
    ]
    title = f"{plan.name} in {environment.name}: {_API[plan.model.task]}, {plan.serving.max_model_len} tokens at most"
    out.print(table(title, columns, rows))
    others = [*plan.served_names[1:], *(adapter.name for adapter in plan.model.adapters)]
    if others:
        out.print(f"Other names that the server knows: {', '.join(others)}.", soft_wrap=True, markup=False)
    for text in absences:
        out.print(text, soft_wrap=True)


def _print_examples(before: list[str], examples: dict[str, str]) -> None:
    out = console()
    for title, text in (
        ("First", "\n".join(before)),
        ("curl", examples["curl"]),
        ("Python", examples["python"]),
    ):
        if text:
            out.print(f"\n{title}:\n\n{text}", soft_wrap=True, markup=False)


def _json(
    plan: ModelPlan,
    environment: Environment,
    known: tuple[Address, ...],
    absences: list[str],
    examples: dict[str, Any],
) -> dict[str, Any]:
    return {
        "model": plan.name,
        "environment": environment.name,
        "task": plan.model.task,
        "maxModelLen": plan.serving.max_model_len,
        "names": list(plan.served_names),
        "adapters": [adapter.name for adapter in plan.model.adapters],
        "addresses": [asdict(address) for address in known],
        "absences": absences,
        "examples": examples,
    }
