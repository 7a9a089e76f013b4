"""PriorityClasses of the models' pods. A team with an accelerator quota has its own classes, on which the
quota is scoped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from modelyard.names import TEAM_LABEL
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.planning import ModelPlan
from modelyard.spec import Environment

PRIORITY_CLASS: Final = "model-server"
BATCH_PRIORITY: Final = "model-batch"


def priority_class(plan: ModelPlan, environment: Environment) -> str:
    """Name of the PriorityClass of a model's pods."""
    name = BATCH_PRIORITY if plan.model.batch else PRIORITY_CLASS
    owner = plan.model.owner
    return f"{name}-{owner.team}" if owner and environment.share(owner.team) is not None else name


def priority_names(team: str | None = None) -> tuple[str, str]:
    """Names of the two classes: for servers, and for batch Jobs."""
    suffix = f"-{team}" if team else ""
    return f"{PRIORITY_CLASS}{suffix}", f"{BATCH_PRIORITY}{suffix}"


def model_priorities(team: str | None = None) -> Iterator[Manifest]:
    """The two PriorityClasses of models; with `team`, two more with the same values that mark the team's
    pods."""
    of_team = f" of team {team}" if team else ""
    served, batch = priority_names(team)
    for name, value, policy, what in (
        (
            served,
            100_000,
            "PreemptLowerPriority",
            f"Model servers{of_team}: after the cluster's own services",
        ),
        (batch, 1_000, "Never", f"Batch jobs{of_team}: give way to model servers"),
    ):
        yield manifest(
            api_version="scheduling.k8s.io/v1",
            kind="PriorityClass",
            name=name,
            labels={**platform_labels("priority"), **({TEAM_LABEL: team} if team else {})},
            description=what,
            value=value,
            preemptionPolicy=policy,
        )
