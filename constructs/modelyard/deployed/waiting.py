"""Asking again until everything is known, without outliving the credentials."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from modelyard.deployed.checks import Answer, Clients

POLL_SECONDS: Final = 15
RENEWAL_SECONDS: Final = 30 * 60
"""A role that was assumed by another role is gone after an hour (IAM, role chaining)."""

Clock = Callable[[], float]


def wait(
    ask: Callable[[], list[Answer]],
    seconds: float,
    *,
    clock: Clock = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    told: Callable[[Sequence[Answer], float], None] = lambda answers, left: None,
) -> list[Answer]:
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


def renewed(make: Callable[[], Clients], *, clock: Clock = time.monotonic) -> Callable[[], Clients]:
    """Gives the clients that `make` makes, and makes new ones after RENEWAL_SECONDS."""
    made: list[tuple[float, Clients]] = []

    def clients() -> Clients:
        if not made or clock() - made[-1][0] >= RENEWAL_SECONDS:
            made[:] = [(clock(), make())]
        return made[-1][1]

    return clients
