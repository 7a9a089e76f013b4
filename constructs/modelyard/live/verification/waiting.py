"""Asking again until everything is known, without outliving the credentials."""

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
"""A role that was assumed by another role is gone after an hour (IAM, role chaining)."""

Clock = Callable[[], float]


def wait(
    ask: Callable[[], list[Observation]],
    seconds: float,
    *,
    clock: Clock = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    told: Callable[[Sequence[Observation], float], None] = lambda answers, left: None,
) -> list[Observation]:
    """What `ask` answers once nothing is pending and nothing may mend any more, or after `seconds`.

    A check that has failed for good ends the waiting. What is pending when the time is over has failed.

    Args:
        told: called before each pause with the answers and the seconds that are left.
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
    """Gives the account that `make` makes, and makes it anew after RENEWAL_SECONDS."""
    made: list[tuple[float, Account]] = []

    def account() -> Account:
        if not made or clock() - made[-1][0] >= RENEWAL_SECONDS:
            made[:] = [(clock(), make())]
        return made[-1][1]

    return account


def as_lookup_role(account: Account, settings: Environment) -> Account:
    """The account as the role sees it that `cdk bootstrap` made for reading: it can read, and nothing else.

    Raises:
        Unanswered: the credentials may not assume the role.
    """
    partition = account.ask(IDENTITY)["Arn"].split(":")[1]
    qualifier = yaml_table("account.yaml")["bootstrap"]["qualifier"]
    role = f"cdk-{qualifier}-lookup-role-{settings.account}-{settings.region}"
    return account.as_role(f"arn:{partition}:iam::{settings.account}:role/{role}", "modelyard-verify")
