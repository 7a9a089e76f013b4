"""`modelyard verify`: does an environment stand as it was deployed?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from modelyard.cli.printing import console, count, print_json, table
from modelyard.cli.workspace import (
    ENVIRONMENTS,
    CommandError,
    EnvironmentsOption,
    EnvOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.deployed.checks import Answer, Clients, verify
from modelyard.spec import Environment

_HELP = """Look from outside whether an environment stands as it was deployed.

\b
  modelyard render --env dev && modelyard verify --env dev
  modelyard verify --env dev --own-credentials     without becoming the lookup role of `cdk bootstrap`

It asks AWS alone: stacks, cluster, node groups, add-ons, and whether the bucket holds what is rendered. What runs in the
cluster it cannot see; there, the jobs of `checks` ask every model.
"""


def register(app: typer.Typer) -> None:
    app.command(name="verify", help=_HELP)(verify_command)


def verify_command(
    env: EnvOption = "local",
    tree: Annotated[
        Path,
        typer.Option("--tree", metavar="DIR", help="Rendered trees; the environment's name is added to it."),
    ] = Path("dist"),
    own_credentials: Annotated[
        bool,
        typer.Option(
            "--own-credentials",
            help="Ask as whoever the shell is, not as the account's lookup role of `cdk bootstrap`.",
        ),
    ] = False,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.table,
) -> int:
    settings = readable_environment(environments, env)
    answers = _answers(settings, tree / settings.name, own_credentials=own_credentials)
    passed = all(answer.passed for answer in answers)
    if output is Output.json:
        checks = [
            {"check": each.check, "passed": each.passed, "seen": each.seen, "problems": list(each.problems)}
            for each in answers
        ]
        print_json("Verification", environment=settings.name, passed=passed, checks=checks)
    else:
        _print(settings, answers)
    return 0 if passed else 1


def _answers(settings: Environment, tree: Path, *, own_credentials: bool) -> list[Answer]:
    try:
        import boto3  # type: ignore[import-untyped]
        from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed; `modelyard verify` needs the extra modelyard[account]"
        ) from error
    try:
        session = boto3.Session(region_name=settings.region)
        return verify(session.client if own_credentials else _as_lookup(session, settings), settings, tree)
    except (BotoCoreError, ClientError) as error:
        raise CommandError(f"{settings.name}: {error}") from error


def _as_lookup(session: Any, settings: Environment) -> Clients:
    """Clients of the role that `cdk bootstrap` made for reading: it can read, and nothing else."""
    sts = session.client("sts")
    partition = sts.get_caller_identity()["Arn"].split(":")[1]
    role = f"cdk-hnb659fds-lookup-role-{settings.account}-{settings.region}"
    credentials = sts.assume_role(
        RoleArn=f"arn:{partition}:iam::{settings.account}:role/{role}", RoleSessionName="modelyard-verify"
    )["Credentials"]

    def client(service: str) -> Any:
        return session.client(
            service,
            aws_access_key_id=credentials["AccessKeyId"],
            aws_secret_access_key=credentials["SecretAccessKey"],
            aws_session_token=credentials["SessionToken"],
        )

    return client


def _print(settings: Environment, answers: list[Answer]) -> None:
    rows = [
        (each.check, "passed" if each.passed else "failed", "; ".join(each.problems) or each.seen)
        for each in answers
    ]
    out = console()
    out.print(
        table(f"{settings.name} in {settings.account}, {settings.region}", ("check", "outcome", ""), rows)
    )
    failed = sum(not each.passed for each in answers)
    verdict = f"{count(failed, 'check')} failed" if failed else "ok"
    out.print(f"{verdict}: seen from outside; the jobs of `checks` in the cluster ask the models themselves")
