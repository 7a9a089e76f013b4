"""Warnings about a model that can run: tight memory and interruptions."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.memory.fit import Fit, fit_warnings
from modelyard.memory.places import Places
from modelyard.planning.checks.proposal import each_plan
from modelyard.planning.records import ModelPlan
from modelyard.spec.environment import Environment


@each_plan
def memory(planned: ModelPlan, environment: Environment) -> Iterator[Finding]:
    """Memory that suffices but is uncertain or tight."""
    serving = planned.serving
    fit = Fit(serving.ledger, serving.max_model_len, serving.max_model_len)
    return fit_warnings(fit, Places.in_file(planned.model))


@each_plan
def disruptions(planned: ModelPlan, environment: Environment) -> Iterator[Finding]:
    """A single replica without `availability: single`."""
    model = planned.model
    if model.replicas.min == 1 and model.availability is None and not model.batch:
        yield Finding(
            "AVAIL001",
            "one replica is an outage at every disruption",
            "use two replicas, or state availability: single",
            subject=model.name,
            field=("replicas",),
        )


@each_plan
def rollouts(planned: ModelPlan, environment: Environment) -> Iterator[Finding]:
    """Rollouts that interrupt the endpoint."""
    if planned.rollout.interrupts:
        yield Finding(
            "ROLL002",
            f"a rollout stops the only replica for about {planned.startup.cold // 60} min: pool "
            f"{planned.placement.pool_name} has no place for another",
            f"raise its limit to {planned.rollout.surge_limit}, or run two replicas",
            subject=planned.model.name,
            field=("replicas",),
        )


@each_plan
def fabrics(planned: ModelPlan, environment: Environment) -> Iterator[Finding]:
    """Replicas over several nodes whose image has no libraries for EFA."""
    serving = planned.serving
    if serving.nodes > 1 and not serving.release.efa:
        yield Finding(
            "NET002",
            f"{serving.release.image} has no EFA libraries: the {serving.nodes} nodes of a replica exchange activations by TCP",
            "set an image with libfabric and aws-ofi-nccl by a patch of the workload, or acknowledge NET002",
            subject=planned.model.name,
            field=("accelerator",),
        )


@each_plan
def startup_budgets(planned: ModelPlan, environment: Environment) -> Iterator[Finding]:
    """Startup budgets that end before the model is loaded."""
    budget, needed = planned.model.startup.budget, planned.startup.load + planned.startup.compile
    if budget and budget < needed:
        yield Finding(
            "LOAD001",
            f"startup budget {budget} s is below the estimate of {needed} s",
            "use auto, or a longer budget",
            subject=planned.model.name,
            field=("startup", "budget"),
        )


@each_plan
def spot_nodes(planned: ModelPlan, environment: Environment) -> Iterator[Finding]:
    """Spot-only pools, where the interruption notice is shorter than loading a replica."""
    placement = planned.placement
    if "spot" in placement.pool.capacity and "on-demand" not in placement.pool.capacity:
        yield Finding(
            "CAP007",
            f"pool {placement.pool_name} is spot alone; loading takes about {planned.startup.cold // 60} min, the "
            "notice two",
            "add on-demand to the pool's capacity",
            subject=planned.model.name,
            field=("accelerator",),
        )
