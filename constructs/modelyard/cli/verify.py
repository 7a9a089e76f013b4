"""`modelyard verify`: is an environment up as deployed?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from modelyard.cli.extras import needed_for
from modelyard.cli.printing import console, count, print_json, seconds, table
from modelyard.cli.workspace import (
    CommandError,
    EnvironmentsOption,
    EnvOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.live.api.answers import Unanswered
from modelyard.live.api.aws import open_account
from modelyard.live.verification import waiting
from modelyard.live.verification.checks import Observation, Outcome, verify
from modelyard.live.verification.reports import UnreadableTree
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
    seen = _observed(
        settings, tree / settings.name, patience=_patience(wait), own_credentials=own_credentials
    )
    outcome = _outcome(seen)
    if output is Output.json:
        checks = [
            {
                "check": each.check,
                "outcome": each.outcome,
                "passed": each.outcome == "passed",
                "seen": each.seen,
                "problems": list(each.problems),
                "pending": [str(job) for job in each.pending],
                "look": list(each.look),
            }
            for each in seen
        ]
        print_json(
            "Verification",
            environment=settings.name,
            outcome=outcome,
            passed=outcome == "passed",
            checks=checks,
        )
    else:
        _print(settings, seen)
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


def _observed(
    settings: Environment, tree: Path, *, patience: int, own_credentials: bool
) -> list[Observation]:
    try:
        with needed_for("modelyard verify", "account"):
            own = open_account(settings.region)
        # boto3 renews the shell's own credentials, if it can.
        account = waiting.renewed(lambda: own if own_credentials else waiting.as_lookup_role(own, settings))

        def ask() -> list[Observation]:
            return verify(account(), settings, tree)

        return waiting.wait(ask, patience, told=_progress(settings)) if patience else ask()
    except Unanswered as why:
        raise CommandError(f"{settings.name}: {why.said}") from why
    except UnreadableTree as why:
        raise CommandError(f"{settings.name}: {why}") from why


def _progress(settings: Environment) -> Callable[[Sequence[Observation], float], None]:
    """Prints on standard error what it waits for, whenever that changes."""
    said: list[str] = []

    def tell(seen: Sequence[Observation], left: float) -> None:
        lines = [f"{each.check}: {problem}" for each in seen for problem in each.problems]
        lines += [str(verdict) for each in seen for verdict in each.pending]
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


def _print(settings: Environment, seen: list[Observation]) -> None:
    rows = [
        (
            each.check,
            each.outcome,
            "\n".join((*each.problems, *map(str, each.pending))) or each.seen,
        )
        for each in seen
    ]
    out = console()
    out.print(
        table(f"{settings.name} in {settings.account}, {settings.region}", ("check", "outcome", ""), rows)
    )
    if commands := [command for each in seen for command in each.look]:
        out.print("Look closer:", *commands, sep="\n    ", end="\n\n", soft_wrap=True, markup=False)
    failed = sum(each.outcome == "failed" for each in seen)
    pending = any(each.outcome == "pending" for each in seen)
    verdict = f"{count(failed, 'check')} failed" if failed else "pending" if pending else "ok"
    out.print(f"{verdict}: {_models_seen(settings, seen)}")


def _outcome(seen: Sequence[Observation]) -> Outcome:
    """The worst outcome."""
    return max((each.outcome for each in seen), key=("passed", "pending", "failed").index)


def _models_seen(settings: Environment, seen: Sequence[Observation]) -> str:
    """A line on the models: exactly what is known."""
    if settings.reports_checks:
        models = next((each for each in seen if each.check == "models"), None)
        if models is None or not models.seen:
            return "there are no reports of models"
        waiting_for = f"; {count(len(models.pending), 'job')} pending" if models.pending else ""
        return f"{models.seen}{waiting_for}"
    if settings.checks.enabled:
        return "seen from outside; the jobs of `checks` in the cluster ask the models themselves"
    return "seen from outside; nobody asks the models"
