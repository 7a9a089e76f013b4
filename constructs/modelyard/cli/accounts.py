"""The account behind an environment, for commands that ask or change one."""

from __future__ import annotations

from typing import Annotated

import typer

from modelyard.account.session import Account, Action, NoCredentials, Unanswered, open_account
from modelyard.cli.workspace import CommandError
from modelyard.spec import Environment

ProfileOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Profile of the AWS configuration; default: AWS_PROFILE or the credentials found.",
    ),
]


def opened(region: str, profile: str | None, command: str) -> Account:
    """The account of `profile`.

    Raises:
        CommandError: boto3 is not installed, or there is no such profile.
    """
    try:
        return open_account(region, profile)
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed; `modelyard {command}` needs the extra modelyard[account]"
        ) from error
    except NoCredentials as error:
        raise CommandError(str(error)) from None


def account_of(environment: Environment, profile: str | None, command: str) -> Account:
    """The environment's own account; a value must not end up in another one.

    Raises:
        CommandError: the credentials are of no account, or of another one.
    """
    account = opened(environment.region, profile, command)
    try:
        found = account.ask(Action("sts", "GetCallerIdentity"))["Account"]
    except Unanswered as why:
        raise CommandError(f"account {environment.account} was not reached: {why}") from None
    if found != environment.account:
        raise CommandError(
            f"the credentials are of account {found}, environment {environment.name} is {environment.account}; name another "
            "--profile"
        )
    return account
