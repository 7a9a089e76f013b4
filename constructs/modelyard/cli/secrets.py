"""`modelyard secrets`: set values in AWS Secrets Manager, list missing values, and generate new keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from modelyard.cli.commands import show_help
from modelyard.cli.connections import ProfileOption, account_of
from modelyard.cli.printing import console, count, print_json, table
from modelyard.cli.rotation import after_rotation
from modelyard.cli.secret_value import refuse_extra, typed_value
from modelyard.cli.workspace import (
    CommandError,
    EnvironmentsOption,
    EnvOption,
    ModelsOption,
    Output,
    OutputOption,
    readable_environment,
)
from modelyard.live.account.secrets import (
    StoredSecret,
    WrongValue,
    checked_value,
    judged,
    kind_of,
    new_key,
    rotatable,
    store,
    stored_secret,
)
from modelyard.live.api.answers import Unanswered
from modelyard.live.api.aws import Account
from modelyard.live.diagnosis import Diagnosis, Health, unknown
from modelyard.project import ENVIRONMENTS, MODELS, Project, load_project
from modelyard.spec import Environment

_HELP = """Values of the secrets that an environment names, in AWS Secrets Manager. A value is never shown.

\b
  modelyard secrets check --env prod
  modelyard secrets set hf-token --env prod                   asks for the value
  modelyard secrets set tls --env prod --from-file tls.json
  modelyard secrets rotate chat-key --env prod
"""
_SET_HELP = """Put a value in: from standard input, or a prompt that shows nothing, or a file. Never from the command line,
which the shell's history and `ps` show.

\b
  modelyard secrets set hf-token --env prod < token.txt
  modelyard secrets set hf-token --env prod                   asks for the value
  jq -n --rawfile crt tls.crt --rawfile key tls.key '{"tls.crt": $crt, "tls.key": $key}' |
    modelyard secrets set tls --env prod                      a gateway's certificate

One newline at the end is taken off. The value before stays in Secrets Manager as AWSPREVIOUS.
"""
_CHECK_HELP = """Every secret of the environment: is it there, does it hold a value, which key encrypts it, when was it
last changed. The exit code is 1 where one is missing, 2 where one could not be checked.
"""
_ROTATE_HELP = """Make a new random key for clients of a model (`access.apiKey`) or of LiteLLM (`masterKey`), and print what
has to happen for it to be used. Tokens and certificates come from others: `secrets set` puts a new one in.
"""
_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}

NameArgument = Annotated[str, typer.Argument(help="Name under the environment's `secrets`.", metavar="NAME")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help=_HELP, callback=show_help, invoke_without_command=True, rich_markup_mode=None)
    # An extra argument may be the value: the message must not repeat it, as the usual one would.
    group.command("set", help=_SET_HELP, context_settings=_ANYTHING)(set_secret)
    group.command("check", help=_CHECK_HELP)(check_secrets)
    group.command("rotate", help=_ROTATE_HELP, context_settings=_ANYTHING)(rotate_secret)
    app.add_typer(group, name="secrets")


def set_secret(
    context: typer.Context,
    name: NameArgument,
    env: EnvOption = "local",
    from_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the value from a file.", dir_okay=False)
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Make the secret as well, where no stack of Modelyard does.")
    ] = False,
    profile: ProfileOption = None,
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
) -> int:
    refuse_extra(context)
    project, environment = _environment(models, environments, env)
    kind = kind_of(_known(name, environment), environment, project.catalogue)
    account = account_of(environment, profile, "secrets set")
    target = environment.secrets[name]
    found = _described(account, target)
    if found is None and not create:
        raise CommandError(
            f"{target} does not exist; stack Secrets makes it: cdk deploy Secrets "
            f"-c env={env}, or add --create where that stack is not used"
        )
    try:
        value, warning = checked_value(typed_value(name, kind, from_file), kind)
    except WrongValue as wrong:
        raise CommandError(f"{name}: {wrong}; nothing was changed") from None
    if warning:
        typer.echo(f"modelyard: {name}: {warning}", err=True)
    version = _stored(account, target, value, create=found is None)
    out = console()
    out.print(f"{name}: version {version} of {target} is current", soft_wrap=True, markup=False)
    if found is None:
        out.print(
            "Stack Secrets cannot make a secret of that name any more: delete this one first, should it be deployed.",
            soft_wrap=True,
        )
    return 0


def check_secrets(
    env: EnvOption = "local",
    profile: ProfileOption = None,
    environments: EnvironmentsOption = ENVIRONMENTS,
    output: OutputOption = Output.table,
) -> int:
    environment = readable_environment(environments, env)
    account = account_of(environment, profile, "secrets check")
    rows = list(_judged(account, environment, env))
    healths = [result.health for _, _, result in rows]
    if output is Output.json:
        print_json(
            "Secrets",
            environment=environment.name,
            passed=all(health is Health.OK for health in healths),
            secrets=[
                {
                    "name": name,
                    "secret": environment.secrets[name],
                    "result": str(result.health),
                    "reason": result.reason,
                    "fix": result.fix or None,
                    "key": found.key if found else None,
                    "lastChanged": found.changed.isoformat() if found and found.changed else None,
                    "rotation": found.rotation if found else None,
                }
                for name, found, result in rows
            ],
        )
    else:
        _print_check(environment, rows)
    return 1 if Health.PROBLEM in healths else 2 if Health.UNKNOWN in healths else 0


def rotate_secret(
    context: typer.Context,
    name: NameArgument,
    env: EnvOption = "local",
    profile: ProfileOption = None,
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
) -> int:
    refuse_extra(context)
    project, environment = _environment(models, environments, env)
    kind = kind_of(_known(name, environment), environment, project.catalogue)
    if not rotatable(name, environment, project.catalogue):
        reason = (
            "a certificate" if kind == "certificate" else "not only a key of a model's clients or of LiteLLM"
        )
        raise CommandError(
            f"{name} is {reason}: who issued it makes the new one; then `modelyard secrets set {name} --env {env}`"
        )
    account = account_of(environment, profile, "secrets rotate")
    target = environment.secrets[name]
    found = _described(account, target)
    if found is None:
        raise CommandError(f"{target} does not exist; stack Secrets makes it, or `secrets set --create`")
    version = _stored(account, target, new_key(kind), create=False)
    out = console()
    for line in after_rotation(name, kind, project.plan(), environment, found.current, version):
        out.print(line, soft_wrap=True, markup=False)
    return 0


def _environment(models: Path, environments: Path, env: str) -> tuple[Project, Environment]:
    project = load_project(env, models, environments)
    return project, project.environment or readable_environment(environments, env)


def _known(name: str, environment: Environment) -> str:
    if name not in environment.secrets:
        known = ", ".join(environment.secrets) or "none"
        # The name may be a value typed in the wrong place.
        raise typer.BadParameter(f"no secret of that name; environment {environment.name} has {known}")
    return name


def _described(account: Account, target: str) -> StoredSecret | None:
    try:
        found = stored_secret(account.ask, target)
    except Unanswered as why:
        raise CommandError(f"{target} was not looked at: {why}") from None
    if found and found.deleted:
        raise CommandError(
            f"{target} is marked for deletion; first: aws secretsmanager restore-secret --secret-id {target} --region "
            f"{account.region}"
        )
    return found


def _stored(account: Account, target: str, value: str, *, create: bool) -> str:
    try:
        return store(account, target, value, create=create)
    except Unanswered as why:
        raise CommandError(f"{target} was not changed: {why}") from None


def _judged(
    account: Account, environment: Environment, env: str
) -> Iterator[tuple[str, StoredSecret | None, Diagnosis]]:
    for name, target in environment.secrets.items():
        try:
            found = stored_secret(account.ask, target)
        except Unanswered as why:
            yield name, None, unknown(name, str(why))
        else:
            yield name, found, judged(environment, env, name, found)


def _print_check(environment: Environment, rows: list[tuple[str, StoredSecret | None, Diagnosis]]) -> None:
    out = console()
    out.print(
        table(
            f"{environment.name}: {count(len(rows), 'secret')}, account {environment.account}, {environment.region}",
            ("NAME", "SECRET", "RESULT", "LAST CHANGED", "ROTATION", "KEY"),
            (
                (
                    name,
                    environment.secrets[name],
                    str(result.health),
                    f"{found.changed:%Y-%m-%d}" if found and found.changed else "-",
                    ("on" if found.rotation else "off") if found else "-",
                    found.key if found else "-",
                )
                for name, found, result in rows
            ),
        )
    )
    for name, _, result in rows:
        if result.health is not Health.OK:
            out.print(f"{name} {result.health}: {result.reason}", soft_wrap=True, markup=False)
            if result.fix:
                out.print(f"    {result.fix}", soft_wrap=True, markup=False)
