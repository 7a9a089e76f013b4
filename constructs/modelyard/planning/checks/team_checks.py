"""Checks of team grants against what the team's models can request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.planning.checks.proposal import Proposal


def unknown_teams(proposal: Proposal) -> Iterator[Finding]:
    """Owners that are not teams of the environment, if it defines any."""
    teams = proposal.environment.teams
    for plan in proposal.plans:
        owner = plan.model.owner
        if not teams or owner is None or plan.serving.on_cpu or plan.role == "prefill":
            continue
        if owner.team not in teams:
            yield Finding(
                "TEAM002",
                f"team '{owner.team}' is not among the environment's teams",
                f"known teams are {', '.join(teams)}",
                subject=plan.model.name,
                field=("owner", "team"),
            )


def granted_accelerators(proposal: Proposal) -> Iterator[Finding]:
    """Teams whose models at maximum replicas hold more accelerators than granted."""
    environment = proposal.environment
    held: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for plan in proposal.plans:
        owner = plan.model.owner
        if owner is not None and owner.team in environment.teams and not plan.serving.on_cpu:
            most = plan.model.replicas.max * plan.serving.count
            held[owner.team, plan.serving.accelerator.name].append((plan.name, most))
    for (team, kind), models in sorted(held.items()):
        share = environment.share(team)
        granted = None if share is None else share.get(kind, 0)
        total = sum(count for _, count in models)
        if granted is not None and total > granted:
            asked = ", ".join(f"{name} {count}" for name, count in models)
            yield Finding(
                "TEAM001",
                f"team {team}: its models can hold {total} {kind}, {granted} are granted: {asked}",
                f"lower replicas.max, or raise teams.{team}.accelerators.{kind} to {total}",
                subject=proposal.subject,
                field=("teams", team, "accelerators", kind),
            )
