"""Polling until every result is known, without outliving the credentials."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from modelyard.hardware.tables import yaml_table
from modelyard.live.api.aws import IDENTITY, Account
from modelyard.live.verification.checks import Observation
from modelyard.spec import Environment

POLL_SECONDS: Final = 15
RENEWAL_SECONDS: Final = 30 * 60
"""A role assumed by another role expires after an hour (IAM, role chaining)."""

Clock = Callable[[], float]


def wait(
    ask: Callable[[], list[Observation]],
    seconds: float,
    *,
    clock: Clock = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    told: Callable[[Sequence[Observation], float], None] = lambda answers, left: None,
) -> list[Observation]:
    """The answers of `ask` once nothing is pending or transient, or after `seconds`.

    A check that has failed for good ends the wait. Checks that are pending at the end have failed.

    Args:
        told: called before each pause with the answers and the remaining seconds.
    """
    deadline = clock() + seconds
    while True:
        answers = ask()
        open_questions = any(each.pending or (each.problems and each.transient) for each in answers)
        if not open_questions or any(each.final for each in answers):
            return answers
        left = deadline - clock()
        if left <= 0:
            return [each.overdue() for each in answers]
        told(answers, left)
        sleep(min(POLL_SECONDS, left))


def renewed(make: Callable[[], Account], *, clock: Clock = time.monotonic) -> Callable[[], Account]:
    """Returns the account from `make`, made anew after RENEWAL_SECONDS."""
    made: list[tuple[float, Account]] = []

    def account() -> Account:
        if not made or clock() - made[-1][0] >= RENEWAL_SECONDS:
            made[:] = [(clock(), make())]
        return made[-1][1]

    return account


def as_lookup_role(account: Account, settings: Environment) -> Account:
    """The account, accessed as the lookup role of `cdk bootstrap`, which is read-only.

    Raises:
        Unanswered: the credentials may not assume the role.
    """
    partition = account.ask(IDENTITY)["Arn"].split(":")[1]
    qualifier = yaml_table("account.yaml")["bootstrap"]["qualifier"]
    role = f"cdk-{qualifier}-lookup-role-{settings.account}-{settings.region}"
    return account.as_role(f"arn:{partition}:iam::{settings.account}:role/{role}", "modelyard-verify")
