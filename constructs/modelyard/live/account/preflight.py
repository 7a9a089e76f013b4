"""Everything in an account that a deploy depends on, checked read-only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from modelyard.live.account.anomaly_monitors import ANOMALIES
from modelyard.live.account.endpoints import ENDPOINTS
from modelyard.live.account.existing_cluster import EXISTING_ADDONS, EXISTING_CLUSTER
from modelyard.live.account.failed_stacks import STACKS
from modelyard.live.account.kubernetes import ADDONS, CLUSTER, KUBERNETES, NODES, VERSIONS
from modelyard.live.account.offerings import OFFERINGS, SPOT
from modelyard.live.account.prerequisites import ADDRESSES, NAMES, SERVICE_ROLES
from modelyard.live.account.principals import PRINCIPALS
from modelyard.live.account.quotas import QUOTAS
from modelyard.live.account.registry import REGISTRY
from modelyard.live.account.reservations import RESERVATIONS
from modelyard.live.account.secrets import SECRETS
from modelyard.live.account.stores import BOOTSTRAP, CACHE
from modelyard.live.account.subnets import SUBNETS
from modelyard.live.api.answers import NoCredentials, Unanswered
from modelyard.live.api.aws import IDENTITY, Account, Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, Health, ok, problem, unknown


def _judge_credentials(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    wanted = case.environment.account
    try:
        identity = ask(IDENTITY)
    except NoCredentials as why:
        yield problem(
            wanted,
            str(why),
            f"aws sso login, or name a profile: modelyard doctor --env {case.env} --profile PROFILE",
        )
        return
    if identity["Account"] != wanted:
        yield problem(
            wanted,
            f"the credentials are of account {identity['Account']} ({identity['Arn']})",
            f"use a profile of {wanted}: modelyard doctor --env {case.env} --profile PROFILE",
        )
        return
    yield ok(wanted, identity["Arn"])


CREDENTIALS = AccountCheck("credentials", (IDENTITY,), _judge_credentials)

CHECKS = (
    CREDENTIALS,
    QUOTAS,
    OFFERINGS,
    SPOT,
    RESERVATIONS,
    SECRETS,
    REGISTRY,
    KUBERNETES,
    CLUSTER,
    ADDONS,
    NODES,
    VERSIONS,
    EXISTING_CLUSTER,
    EXISTING_ADDONS,
    SUBNETS,
    ENDPOINTS,
    BOOTSTRAP,
    CACHE,
    PRINCIPALS,
    ANOMALIES,
    STACKS,
    SERVICE_ROLES,
    ADDRESSES,
    NAMES,
)
"""In this order. Without valid credentials, the other checks would query another account, or none."""


def examine(account: Account, case: Case) -> tuple[Diagnosis, ...]:
    """Run every check, even after one that found a problem or got no answer."""
    first = _run(CREDENTIALS, account, case)
    if any(result.health is Health.PROBLEM for result in first):
        rest = [
            replace(unknown("", "without credentials of the account"), check=check.name)
            for check in CHECKS
            if check is not CREDENTIALS
        ]
        return (*first, *rest)
    return (
        *first,
        *(result for check in CHECKS if check is not CREDENTIALS for result in _run(check, account, case)),
    )


def _run(check: AccountCheck, account: Account, case: Case) -> list[Diagnosis]:
    found: list[Diagnosis] = []
    try:
        for result in check.judge(_limited(account, check), case):
            found.append(replace(result, check=check.name))
    except Unanswered as why:
        found.append(replace(unknown("", str(why)), check=check.name))
    return found


def _limited(account: Account, check: AccountCheck) -> Ask:
    """The account, restricted to the operations that the check declares, as the policy allows no others."""

    def ask(operation: Operation, **parameters: Any) -> dict[str, Any]:
        if operation not in check.operations:
            raise LookupError(f"check {check.name} asks for {operation.permission} and does not declare it")
        return account.ask(operation, **parameters)

    return ask


def policy() -> dict[str, Any]:
    """The IAM policy for `modelyard doctor`: what the checks declare, all of it read-only."""
    permissions = sorted({operation.permission for check in CHECKS for operation in check.operations})
    return {
        "Version": "2012-10-17",
        "Statement": [{"Sid": "ModelyardDoctor", "Effect": "Allow", "Action": permissions, "Resource": "*"}],
    }
