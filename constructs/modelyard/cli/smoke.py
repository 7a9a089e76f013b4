"""`modelyard smoke`: does an endpoint do what its model's file promises?"""

from __future__ import annotations

from typing import Annotated

import typer

from modelyard.cli.endpoints import (
    API_KEY,
    KeyOption,
    ModelArgument,
    TimeoutOption,
    UrlOption,
    planned_model,
    target,
)
from modelyard.cli.extras import needed_for
from modelyard.cli.printing import console, count, print_json, table
from modelyard.cli.workspace import (
    EnvironmentsOption,
    EnvOption,
    ModelsOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.endpoint_tests.promises import expectations
from modelyard.endpoint_tests.smoke import SmokeResult, run_checks
from modelyard.project import ENVIRONMENTS, MODELS

_HELP = """Ask a running endpoint for everything that its model's file promises, with the OpenAI client.

\b
  modelyard smoke qwen3-32b-fp8 --url http://127.0.0.1:8000/v1
  modelyard smoke qwen3-32b-fp8 --env prod --output json       from a pod of the cluster
  kubectl -n models port-forward service/qwen3-32b-fp8 8000:80 for a way in from outside

Every check runs, whatever failed before. The exit code is 1 where one failed.
"""


def register(app: typer.Typer) -> None:
    app.command(name="smoke", help=_HELP)(smoke)


def smoke(
    model: ModelArgument,
    env: EnvOption = "local",
    url: UrlOption = None,
    api_key_env: KeyOption = API_KEY,
    timeout: TimeoutOption = 60,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time for a server that is still starting.", min=0)
    ] = 0,
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.table,
) -> int:
    plan = planned_model(model, models, environments, env)
    namespace = readable_environment(environments, env).namespace
    asked = target(plan, namespace, url=url, key_variable=api_key_env, timeout=timeout)
    with needed_for("modelyard smoke", "clients"):
        import openai  # noqa: F401
    result = run_checks(expectations(plan), asked, wait=wait)
    if output is Output.json:
        document = result.as_json()
        print_json(document.pop("kind"), **{k: v for k, v in document.items() if k != "schemaVersion"})
    else:
        _print(result)
    return 0 if result.passed else 1


def _print(result: SmokeResult) -> None:
    rows = [
        (each.name, str(each.outcome), f"{each.seconds:.1f}", each.reason or "") for each in result.results
    ]
    columns = ("check", "outcome", "seconds", "reason")
    out = console()
    out.print(table(f"{result.model} at {result.url}", columns, rows, right=("seconds",)))
    outcomes = [each.outcome for each in result.results]
    failed, skipped = outcomes.count("failed"), outcomes.count("skipped")
    verdict = "ok" if result.passed else f"{count(failed, 'check')} failed"
    out.print(f"{verdict}: {count(outcomes.count('passed'), 'check')} passed, {skipped} skipped")
