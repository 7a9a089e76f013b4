"""Checks of who is told of alerts."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.planning.checks.proposal import Proposal
from modelyard.reading import suggestion


def somebody_is_paged(proposal: Proposal) -> Iterator[Finding]:
    """Strict environments whose critical alerts reach nobody, or only the owners of some models.

    Whoever routes alerts in an Alertmanager of their own is not asked.
    """
    environment = proposal.environment
    monitoring = environment.monitoring
    ours = monitoring.enabled and monitoring.install and environment.delivery != "none"
    if not environment.strict or not ours:
        return
    critical = [each for each in monitoring.receivers.values() if "critical" in each.severities]
    if any(not each.teams for each in critical):
        return
    teams = ", ".join(sorted({team for each in critical for team in each.teams}))
    yield Finding(
        "PAGE001",
        f"critical alerts reach nobody but team {teams}: neither those of the platform nor of other models"
        if critical
        else "critical alerts fire, and nobody is told",
        "add a receiver without teams, such as monitoring.receivers: {on-call: {sns: {emails: [on-call@example.com]}}}",
        subject=proposal.subject,
        field=("monitoring", "receivers") if monitoring.receivers else ("monitoring",),
    )


def receivers(proposal: Proposal) -> Iterator[Finding]:
    """Receivers that name a secret or a team that is not there."""
    environment = proposal.environment
    owners = {model.owner.team for model in proposal.catalogue.models.values() if model.owner}
    teams = sorted({*owners, *environment.teams})
    for name, receiver in environment.monitoring.receivers.items():
        place = ("monitoring", "receivers", name)
        if (secret := receiver.secret) and secret not in environment.secrets:
            yield Finding(
                "ENV002",
                f"receiver {name}: secret '{secret}' is not mapped in environment {environment.name}",
                suggestion(secret, environment.secrets)
                + f"add it under secrets; known are {', '.join(environment.secrets) or 'none'}",
                subject=proposal.subject,
                field=(*place, *(("slack", "webhook") if receiver.slack else ("pagerDuty",))),
            )
        for index, team in enumerate(receiver.teams):
            if team not in teams:
                yield Finding(
                    "ENV002",
                    f"receiver {name}: no model belongs to team '{team}', so it hears nothing of it",
                    f"{suggestion(team, teams)}known teams are {', '.join(teams) or 'none'}",
                    subject=proposal.subject,
                    field=(*place, "teams", index),
                )
