"""Rules as data, and in PrometheusRule format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Severity = Literal["critical", "warning", "info"]
"""`critical` pages on-call, `warning` waits until morning, `info` is for the cost owner."""


@dataclass(frozen=True)
class Recording:
    """A recording rule. `by`: labels that the expression keeps; `labels`: labels that the rule adds."""

    record: str
    expr: str
    by: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = {"record": self.record, "expr": self.expr}
        return {**document, "labels": dict(self.labels)} if self.labels else document


@dataclass(frozen=True)
class Alert:
    """An alerting rule. Its runbook is `docs/runbooks/NAME.md`; `wait` is Prometheus' `for`."""

    name: str
    expr: str
    wait: str
    severity: Severity
    summary: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def document(self, runbooks: str | None) -> dict[str, Any]:
        page = f"{self.name}.md"
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.wait,
            "labels": {"severity": self.severity, **self.labels},
            "annotations": {
                "summary": self.summary,
                "runbook_url": f"{runbooks}/{page}" if runbooks else f"docs/runbooks/{page}",
            },
        }


@dataclass(frozen=True)
class RuleGroup:
    """Rules that are evaluated in sequence."""

    name: str
    rules: tuple[Recording | Alert, ...]

    def labelled(self, labels: Mapping[str, str]) -> RuleGroup:
        """The group with `labels` on every alert; receivers choose by them."""
        rules = (
            replace(rule, labels={**rule.labels, **labels}) if isinstance(rule, Alert) else rule
            for rule in self.rules
        )
        return replace(self, rules=tuple(rules)) if labels else self

    def document(self, runbooks: str | None = None) -> dict[str, Any]:
        return {
            "name": self.name,
            "rules": [
                rule.document(runbooks) if isinstance(rule, Alert) else rule.document() for rule in self.rules
            ],
        }


def seconds(value: int) -> str:
    """A duration in PromQL syntax."""
    return f"{value // 60}m" if value % 60 == 0 else f"{value}s"
