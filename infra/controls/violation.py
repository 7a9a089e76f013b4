"""A checker's finding, in one form for all checkers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Checker = Literal["cdk-nag", "cfn-guard", "cfn-validate", "template-rules", "cfn-lint", "checkov"]
Template = dict[str, Any]


@dataclass(frozen=True, order=True)
class Violation:
    """A rule that a resource of a template violates.

    `path` is the construct path starting with its stack, such as `Network/Network/Vpc/Resource`: the same for
    every checker and environment, inside or outside a pipeline.
    """

    checker: Checker
    rule: str
    path: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.checker}: {self.rule} at {self.path}: {self.message}"
