"""The account and the cluster of an environment, for commands that read or change them."""

from __future__ import annotations

from typing import Annotated

import typer

from modelyard.cli.extras import needed_for
from modelyard.cli.workspace import CommandError
from modelyard.live.api.answers import NoCredentials, Unanswered, Unreachable
from modelyard.live.api.aws import IDENTITY, Account, open_account
from modelyard.live.api.kubernetes import LiveCluster, open_cluster
from modelyard.spec import Environment

ProfileOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Profile of the AWS configuration; default: AWS_PROFILE or the credentials found.",
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Context of the kubeconfig; default: the one of the environment's cluster, by its ARN.",
    ),
]


def opened(region: str, profile: str | None, command: str) -> Account:
    """The account of `profile`.

    Raises:
        CommandError: boto3 is not installed, or the profile does not exist.
    """
    try:
        with needed_for(f"modelyard {command}", "account"):
            account = open_account(region, profile)
    except NoCredentials as error:
        raise CommandError(str(error)) from None
    return account


def account_of(environment: Environment, profile: str | None, command: str) -> Account:
    """The environment's own account; a secret must not end up in another one.

    Raises:
        CommandError: the credentials are invalid, or belong to another account.
    """
    account = opened(environment.region, profile, command)
    try:
        found = account.ask(IDENTITY)["Account"]
    except Unanswered as why:
        raise CommandError(f"account {environment.account} was not reached: {why}") from None
    if found != environment.account:
        raise CommandError(
            f"the credentials are of account {found}, environment {environment.name} is {environment.account}; name another "
            "--profile"
        )
    return account


def connected(environment: Environment, context: str | None, command: str) -> LiveCluster:
    """The environment's cluster.

    Raises:
        CommandError: lightkube is not installed.
        Unreachable: the kubeconfig has no context for it.
    """
    with needed_for(f"modelyard {command}", "cluster"):
        cluster = open_cluster(environment, context)
    return cluster


def cluster_of(environment: Environment, context: str | None, command: str) -> LiveCluster:
    """Like `connected`, for commands that need the cluster.

    Raises:
        CommandError: it cannot be reached.
    """
    try:
        return connected(environment, context, command)
    except Unreachable as why:
        raise CommandError(str(why)) from None
