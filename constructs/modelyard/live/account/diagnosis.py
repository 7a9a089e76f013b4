"""What a check of an account says."""

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
    """One thing in the account, judged. `fix` is the command or the lines of YAML that mend it."""

    subject: str
    health: Health
    reason: str
    fix: str = ""
    check: str = ""
    """Name of the check; filled in by the one who runs it."""


def ok(subject: str, reason: str) -> Diagnosis:
    return Diagnosis(subject, Health.OK, reason)


def problem(subject: str, reason: str, fix: str) -> Diagnosis:
    return Diagnosis(subject, Health.PROBLEM, reason, fix)


def unknown(subject: str, reason: str) -> Diagnosis:
    return Diagnosis(subject, Health.UNKNOWN, reason)


@dataclass(frozen=True)
class Case:
    """What the account is held against."""

    environment: Environment
    plan: Plan
    now: datetime
    env: str
    """What commands call the environment: its file's name, which `name` in the file may differ from."""
    file: str
    """The environment's file, for fixes that change it."""


@dataclass(frozen=True)
class AccountCheck:
    """A check by name. It may ask for `operations` and nothing else: the policy for `modelyard doctor` is
    made of them."""

    name: str
    operations: tuple[Operation, ...]
    judge: Callable[[Ask, Case], Iterator[Diagnosis]]


def one_by_one(subjects: Iterable[str], judge: Callable[[str], Diagnosis]) -> Iterator[Diagnosis]:
    """Judge each of `subjects`, also after one that the account gave no answer about."""
    for subject in subjects:
        try:
            yield judge(subject)
        except NoCredentials:
            raise
        except Unanswered as why:
            yield unknown(subject, str(why))


def days_between(now: datetime, end: datetime) -> int:
    """Whole days that are left; below zero when `end` is over."""
    return (end - now).days
