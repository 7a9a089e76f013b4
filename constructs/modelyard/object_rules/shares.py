"""Team quotas: a ResourceQuota counts only pods with the PriorityClasses that it names."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.names import TEAM_LABEL
from modelyard.object_rules.broken import broken
from modelyard.object_rules.pods import Manifest, at, named, pod_templates, runs_engine


def share_findings(items: list[Manifest]) -> Iterator[Finding]:
    """Pods that the team's quota in their namespace does not count, and team classes that no quota counts."""
    counted: dict[tuple[str | None, str], set[str]] = {}
    for item in items:
        team = (at(item, "metadata.labels") or {}).get(TEAM_LABEL)
        if item["kind"] == "ResourceQuota" and team and (classes := _classes(item)):
            counted[named(item)[0], team] = classes
    known = set().union(*counted.values())
    for item in items:
        labels = at(item, "metadata.labels") or {}
        if item["kind"] == "PriorityClass" and labels.get(TEAM_LABEL) and named(item)[1] not in known:
            yield broken(
                item, f"counts for no share of team {labels[TEAM_LABEL]}", "keep the team's ResourceQuota"
            )
        for template in pod_templates(item) if runs_engine(item) else ():
            team = template["metadata"].get("labels", {}).get(TEAM_LABEL)
            share = counted.get((named(item)[0], team)) if team else None
            priority = template["spec"].get("priorityClassName")
            if share and priority not in share:
                yield broken(
                    item,
                    f"has priority {priority}, which the share of team {team} does not count",
                    f"keep its PriorityClass: one of {', '.join(sorted(share))}",
                )


def _classes(quota: Manifest) -> set[str]:
    return {
        name
        for each in at(quota, "spec.scopeSelector.matchExpressions") or []
        if each.get("scopeName") == "PriorityClass" and each.get("operator") == "In"
        for name in each.get("values") or []
    }
