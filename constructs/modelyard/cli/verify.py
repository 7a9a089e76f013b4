"""`modelyard verify`: does an environment stand as it was deployed?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from modelyard.cli.printing import console, count, print_json, seconds, table
from modelyard.cli.workspace import (
    CommandError,
    EnvironmentsOption,
    EnvOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.deployed import waiting
from modelyard.deployed.checks import Answer, Clients, verify
from modelyard.deployed.models import UnreadableTree
from modelyard.project import ENVIRONMENTS
from modelyard.spec import Environment
from modelyard.spec.document import Seconds

_HELP = """Look from outside whether an environment stands as it was deployed.

\b
  modelyard render --env dev && modelyard verify --env dev
  modelyard verify --env dev --wait 150m           until every model has answered, or one has failed
  modelyard verify --env dev --own-credentials     without becoming the lookup role of `cdk bootstrap`

It asks AWS alone: stacks, cluster, node groups, add-ons, and whether the bucket holds what is rendered. Where Flux delivers,
the jobs of `checks` ask every model in the cluster and report into a bucket, which it reads. Without --wait a model that
nobody has reported on is pending, which is no failure.
"""


def register(app: typer.Typer) -> None:
    app.command(name="verify", help=_HELP)(verify_command)


def verify_command(
    env: EnvOption = "local",
    tree: Annotated[
        Path,
        typer.Option("--tree", metavar="DIR", help="Rendered trees; the environment's name is added to it."),
    ] = Path("dist"),
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="DURATION",
            help="Ask again for so long, such as 45s, 150m or 2h, until every model has answered.",
        ),
    ] = None,
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
    answers = _answers(
        settings, tree / settings.name, patience=_patience(wait), own_credentials=own_credentials
    )
    outcome = _outcome(answers)
    if output is Output.json:
        checks = [
            {
                "check": each.check,
                "outcome": each.outcome,
                "passed": each.outcome == "passed",
                "seen": each.seen,
                "problems": list(each.problems),
                "pending": [str(verdict) for verdict in each.pending],
                "look": list(each.look),
            }
            for each in answers
        ]
        print_json(
            "Verification",
            environment=settings.name,
            outcome=outcome,
            passed=outcome == "passed",
            checks=checks,
        )
    else:
        _print(settings, answers)
    return 1 if outcome == "failed" else 0


def _patience(stated: str | None) -> int:
    """Seconds of --wait; 0 without it."""
    if stated is None:
        return 0
    try:
        return TypeAdapter(Seconds).validate_python(stated)
    except ValidationError:
        raise typer.BadParameter(
            f"--wait '{stated}' is no duration; write a whole number above 0 with a unit, such as 45s, 150m or 2h"
        ) from None


def _answers(settings: Environment, tree: Path, *, patience: int, own_credentials: bool) -> list[Answer]:
    try:
        import boto3  # type: ignore[import-untyped]
        from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed; `modelyard verify` needs the extra modelyard[account]"
        ) from error
    try:
        session = boto3.Session(region_name=settings.region)
        # The shell's own credentials are renewed by boto3, where they can be.
        own = cache(session.client)
        clients = waiting.renewed(lambda: own if own_credentials else _as_lookup(session, settings))

        def ask() -> list[Answer]:
            return verify(clients(), settings, tree)

        return waiting.wait(ask, patience, told=_progress(settings)) if patience else ask()
    except (BotoCoreError, ClientError, UnreadableTree) as error:
        raise CommandError(f"{settings.name}: {error}") from error


def _as_lookup(session: Any, settings: Environment) -> Clients:
    """Clients of the role that `cdk bootstrap` made for reading: it can read, and nothing else."""
    sts = session.client("sts")
    partition = sts.get_caller_identity()["Arn"].split(":")[1]
    role = f"cdk-hnb659fds-lookup-role-{settings.account}-{settings.region}"
    credentials = sts.assume_role(
        RoleArn=f"arn:{partition}:iam::{settings.account}:role/{role}", RoleSessionName="modelyard-verify"
    )["Credentials"]

    @cache  # one for each service: they are made again with the next credentials
    def client(service: str) -> Any:
        return session.client(
            service,
            aws_access_key_id=credentials["AccessKeyId"],
            aws_secret_access_key=credentials["SecretAccessKey"],
            aws_session_token=credentials["SessionToken"],
        )

    return client


def _progress(settings: Environment) -> Callable[[Sequence[Answer], float], None]:
    """Says on standard error what is waited for, whenever that is something else."""
    said: list[str] = []

    def tell(answers: Sequence[Answer], left: float) -> None:
        lines = [f"{each.check}: {problem}" for each in answers for problem in each.problems]
        lines += [str(verdict) for each in answers for verdict in each.pending]
        if lines != said:
            said[:] = lines
            console(stderr=True).print(
                f"{settings.name}: waiting, for {seconds(round(left))} at the most",
                *lines,
                sep="\n    ",
                soft_wrap=True,
                markup=False,
            )

    return tell


def _print(settings: Environment, answers: list[Answer]) -> None:
    rows = [
        (
            each.check,
            each.outcome,
            "\n".join((*each.problems, *map(str, each.pending))) or each.seen,
        )
        for each in answers
    ]
    out = console()
    out.print(
        table(f"{settings.name} in {settings.account}, {settings.region}", ("check", "outcome", ""), rows)
    )
    if commands := [command for each in answers for command in each.look]:
        out.print("Look closer:", *commands, sep="\n    ", end="\n\n", soft_wrap=True, markup=False)
    failed = sum(each.outcome == "failed" for each in answers)
    pending = any(each.outcome == "pending" for each in answers)
    verdict = f"{count(failed, 'check')} failed" if failed else "pending" if pending else "ok"
    out.print(f"{verdict}: {_seen(settings, answers)}")


def _outcome(answers: Sequence[Answer]) -> str:
    """The worst of all outcomes."""
    return max((each.outcome for each in answers), key=("passed", "pending", "failed").index)


def _seen(settings: Environment, answers: Sequence[Answer]) -> str:
    """What is known of the models, no more and no less."""
    if settings.reports_checks:
        models = next((each for each in answers if each.check == "models"), None)
        if models is None or not models.seen:
            return "there are no reports of models"
        waiting_for = f"; {count(len(models.pending), 'job')} pending" if models.pending else ""
        return f"{models.seen}{waiting_for}"
    if settings.checks.enabled:
        return "seen from outside; the jobs of `checks` in the cluster ask the models themselves"
    return "seen from outside; nobody asks the models"
