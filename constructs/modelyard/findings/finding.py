"""A problem, its location and its fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from modelyard.findings.registry import check
from modelyard.secret_values import mask


class Severity(StrEnum):
    """`error` blocks a deploy; `warning` is shown, and blocks it if the environment's policy is strict."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, order=True)
class Location:
    """A location in a file; `line` and `column` are 1-based, as in editors."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{mask(self.file)}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Finding:
    """A problem found by one check.

    `code`: a key of `findings.CHECKS`; `severity`: default from the registry. `subject`: the model or
    environment; `field`: the path in its file, from which the reader derives `location`.
    """

    code: str
    message: str
    fix: str
    location: Location | None = None
    subject: str = ""
    field: tuple[str | int, ...] = ()
    severity: Severity | None = None

    def __post_init__(self) -> None:
        # Messages quote user input and end up in logs, so known credentials are masked here, for every
        # finding.
        for part in ("message", "fix", "subject"):
            if (bare := mask(text := getattr(self, part))) != text:
                object.__setattr__(self, part, bare)

    @property
    def level(self) -> Severity:
        return self.severity or Severity(check(self.code).severity)

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        place = self.location or Location("")
        return (place.file, place.line, place.column, self.code, self.message)

    def at(self, location: Location | None) -> Finding:
        """The finding with `location`, unless it already has one."""
        return self if self.location or not location else replace(self, location=location)

    def promoted(self) -> Finding:
        """The finding as an error, for a warning in a strict environment."""
        return replace(self, severity=Severity.ERROR)

    def __str__(self) -> str:
        place = f"{self.location} " if self.location else f"{self.subject} " if self.subject else ""
        return f"{place}{self.code} {self.level}: {self.message}; {self.fix}"


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The highest severity among `findings`; None if there are none."""
    levels = {finding.level for finding in findings}
    if Severity.ERROR in levels:
        return Severity.ERROR
    return Severity.WARNING if levels else None
