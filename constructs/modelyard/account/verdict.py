"""What a check of an account says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from modelyard.account.session import Action, NoCredentials, Unanswered
from modelyard.planning import Plan
from modelyard.spec import Environment


class Verdict(StrEnum):
    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "not checked"


@dataclass(frozen=True)
class Result:
    """One thing in the account, judged. `fix` is the command or the lines of YAML that mend it."""

    subject: str
    verdict: Verdict
    reason: str
    fix: str = ""
    check: str = ""
    """Name of the check; filled in by the one who runs it."""


def ok(subject: str, reason: str) -> Result:
    return Result(subject, Verdict.OK, reason)


def problem(subject: str, reason: str, fix: str) -> Result:
    return Result(subject, Verdict.PROBLEM, reason, fix)


def unknown(subject: str, reason: str) -> Result:
    return Result(subject, Verdict.UNKNOWN, reason)


class Ask(Protocol):
    """A question to the account, see `Account.ask`."""

    def __call__(self, action: Action, **parameters: Any) -> dict[str, Any]: ...


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
class Check:
    """A check by name. It may ask for `actions` and nothing else: the policy for `modelyard doctor` is made of them."""

    name: str
    actions: tuple[Action, ...]
    judge: Callable[[Ask, Case], Iterator[Result]]


def one_by_one(subjects: Iterable[str], judge: Callable[[str], Result]) -> Iterator[Result]:
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
