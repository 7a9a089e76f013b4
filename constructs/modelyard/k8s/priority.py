"""Priorities of models' pods; a team with a share of the accelerators has classes of its own, by which it is counted."""

from __future__ import annotations

from typing import Final

from constructs import Construct

from modelyard.k8s.labels import TEAM, platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.planning import ModelPlan
from modelyard.spec import Environment

PRIORITY_CLASS: Final = "model-server"
BATCH_PRIORITY: Final = "model-batch"


def priority_class(plan: ModelPlan, environment: Environment) -> str:
    """Name of the PriorityClass of a model's pods."""
    name = BATCH_PRIORITY if plan.model.batch else PRIORITY_CLASS
    owner = plan.model.owner
    return f"{name}-{owner.team}" if owner and environment.share(owner.team) is not None else name


class ModelPriorities(Construct):
    """The two PriorityClasses of models; with `team` another two of the same values, which tell its pods from others'."""

    def __init__(self, scope: Construct, construct_id: str, *, team: str | None = None) -> None:
        super().__init__(scope, construct_id)
        suffix = f"-{team}" if team else ""
        of_team = f" of team {team}" if team else ""
        self.names = tuple(f"{name}{suffix}" for name in (PRIORITY_CLASS, BATCH_PRIORITY))
        for name, value, policy, what in (
            (
                PRIORITY_CLASS,
                100_000,
                "PreemptLowerPriority",
                f"Model servers{of_team}: after the cluster's own services",
            ),
            (BATCH_PRIORITY, 1_000, "Never", f"Batch jobs{of_team}: give way to model servers"),
        ):
            manifest(
                self,
                f"PriorityClass-{name}",
                api_version="scheduling.k8s.io/v1",
                kind="PriorityClass",
                name=f"{name}{suffix}",
                labels={**platform_labels("priority"), **({TEAM: team} if team else {})},
                description=what,
                value=value,
                preemptionPolicy=policy,
            )
