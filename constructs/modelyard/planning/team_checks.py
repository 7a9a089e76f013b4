"""Checks of what teams may hold against what their models can ask for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from modelyard.findings import Finding
from modelyard.planning.records import ModelPlan
from modelyard.spec.environment import Environment


def team_findings(plans: Iterable[ModelPlan], environment: Environment) -> Iterator[Finding]:
    """Teams whose models, all at their most replicas, hold more accelerators than the environment grants; owners that
    the environment does not know, where it names teams at all."""
    if not environment.teams:
        return
    held: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for plan in plans:
        owner = plan.model.owner
        if owner is None or plan.serving.on_cpu:
            continue
        if owner.team not in environment.teams:
            if plan.role != "prefill":
                yield Finding(
                    "TEAM002",
                    f"team '{owner.team}' is not among the environment's teams",
                    f"known teams are {', '.join(environment.teams)}",
                    subject=plan.model.name,
                    field=("owner", "team"),
                )
            continue
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
                subject=f"environment {environment.name}",
                field=("teams", team, "accelerators", kind),
            )


def rollout_room(plans: Iterable[ModelPlan], team: str) -> Mapping[str, int]:
    """Accelerators by kind that replicas of the team's models hold beyond their largest number while all are replaced."""
    room: Counter[str] = Counter()
    for plan in plans:
        if (
            plan.model.owner
            and plan.model.owner.team == team
            and not (plan.serving.on_cpu or plan.model.batch)
        ):
            room[plan.serving.accelerator.name] += plan.rollout.max_surge * plan.serving.count
    return room
