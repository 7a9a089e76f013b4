"""Results of account checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from modelyard.live.api.answers import NoCredentials, Unanswered
from modelyard.live.api.aws import Ask, Operation
from modelyard.planning import Plan
from modelyard.spec import Environment


class Health(StrEnum):
    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "not checked"


@dataclass(frozen=True)
class Diagnosis:
    """One checked item of the account. `fix` is the command or the YAML that fixes it."""

    subject: str
    health: Health
    reason: str
    fix: str = ""
    check: str = ""
    """Name of the check; set by the runner."""


def ok(subject: str, reason: str) -> Diagnosis:
    return Diagnosis(subject, Health.OK, reason)


def problem(subject: str, reason: str, fix: str) -> Diagnosis:
    return Diagnosis(subject, Health.PROBLEM, reason, fix)


def unknown(subject: str, reason: str) -> Diagnosis:
    return Diagnosis(subject, Health.UNKNOWN, reason)


@dataclass(frozen=True)
class Case:
    """The environment and plan that the account is checked against."""

    environment: Environment
    plan: Plan
    now: datetime
    env: str
    """The environment's name on the command line: its file's name, which may differ from `name` in the
    file."""
    file: str
    """The environment's file, for fixes that edit it."""


@dataclass(frozen=True)
class AccountCheck:
    """A check by name. It may call only its `operations`: the IAM policy for `modelyard doctor` is built from
    them."""

    name: str
    operations: tuple[Operation, ...]
    judge: Callable[[Ask, Case], Iterator[Diagnosis]]


def one_by_one(subjects: Iterable[str], judge: Callable[[str], Diagnosis]) -> Iterator[Diagnosis]:
    """Judge each of `subjects`; an unanswered call for one does not stop the rest."""
    for subject in subjects:
        try:
            yield judge(subject)
        except NoCredentials:
            raise
        except Unanswered as why:
            yield unknown(subject, str(why))


def days_between(now: datetime, end: datetime) -> int:
    """Whole days left until `end`; negative if it has passed."""
    return (end - now).days
