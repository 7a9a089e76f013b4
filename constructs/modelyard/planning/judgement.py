"""Findings with file position, severity and acknowledgement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from modelyard.findings import Finding, Severity
from modelyard.planning.records import Acknowledged
from modelyard.spec.environment import Environment
from modelyard.spec.loading import Catalogue
from modelyard.spec.yaml_source import YamlSource


def located(finding: Finding, catalogue: Catalogue, source: YamlSource | None) -> Finding:
    if finding.subject in catalogue.sources:
        return finding.at(catalogue.locate(finding.subject, finding.field))
    return finding.at(source.locate(finding.field)) if source else finding


def judge(
    findings: Iterable[Finding], environment: Environment
) -> tuple[tuple[Finding, ...], tuple[Acknowledged, ...]]:
    """Open findings and acknowledged warnings; in a strict environment every open finding is an error."""
    opened, accepted = [], []
    for finding in sorted(findings, key=lambda f: f.sort_key):
        reason = next(
            (
                a.reason
                for a in environment.acknowledge
                if a.code == finding.code and a.model in (None, finding.subject)
            ),
            None,
        )
        if reason and finding.level is Severity.WARNING:
            accepted.append(Acknowledged(finding, reason))
        else:
            opened.append(replace(finding, severity=Severity.ERROR) if environment.strict else finding)
    return tuple(opened), tuple(accepted)
