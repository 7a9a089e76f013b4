"""The plan of an environment: each model's settings, placement, rollout, start-up and cost, and all
findings."""

from __future__ import annotations

from collections.abc import Iterable

from modelyard.engines import parsers_for
from modelyard.findings import Finding
from modelyard.hardware import Prices
from modelyard.planning.checks import problems
from modelyard.planning.checks.proposal import Proposal
from modelyard.planning.choice import Choice, choice_cost
from modelyard.planning.judgement import judge, located
from modelyard.planning.occupancy import Occupancy, occupancies
from modelyard.planning.quota import quota_needs
from modelyard.planning.records import ModelPlan, Plan
from modelyard.planning.rollout import plan_rollout
from modelyard.planning.startup import plan_startup
from modelyard.planning.workloads import Workload, workloads
from modelyard.spec.environment import Environment
from modelyard.spec.loading import Catalogue
from modelyard.spec.yaml_source import YamlSource

HF_TOKEN = "hf-token"
"""Logical name of the secret that holds the Hugging Face token."""


def plan(
    catalogue: Catalogue,
    environment: Environment,
    findings: Iterable[Finding] = (),
    source: YamlSource | None = None,
    prices: Prices | None = None,
) -> Plan:
    """Plan every model of `catalogue`.

    `findings`: from loading, judged together with the plan's own. `source`: the environment file, for
    positions. `prices`: of the environment's region; default: the shipped price list.

    Raises:
        ValueError: `prices` are for another region.
    """
    known = prices or Prices(environment.region)
    if known.region != environment.region:
        raise ValueError(f"prices of {known.region} for an environment in {environment.region}")
    proposal = _proposal(catalogue, environment, known)
    found = [*findings, *problems(proposal)]
    placed = [located(finding, catalogue, source) for finding in found]
    open_findings, acknowledged = judge(placed, environment)
    return Plan(environment, known, proposal.plans, proposal.quotas, open_findings, acknowledged)


def _proposal(catalogue: Catalogue, environment: Environment, prices: Prices) -> Proposal:
    every = workloads(catalogue, environment, prices)
    placed = [(workload, workload.choice) for workload in every if workload.choice]
    occupied = occupancies(
        {workload.name: choice for workload, choice in placed},
        {workload.name: workload.model.replicas.max for workload, _ in placed},
    )
    found = [
        _complete(workload, choice, environment, occupied[choice.placement.pool_name], prices)
        for workload, choice in placed
    ]
    plans = tuple(each for each in found if isinstance(each, ModelPlan))
    quotas = quota_needs(
        ((p.placement, p.cost.nodes_ceiling + p.rollout.max_surge * p.serving.nodes) for p in plans),
        environment.quotas,
    )
    return Proposal(
        catalogue=catalogue,
        environment=environment,
        prices=prices,
        workloads=every,
        occupied=occupied,
        plans=plans,
        refusals=tuple(each for each in found if isinstance(each, Finding)),
        quotas=quotas,
    )


def _complete(
    workload: Workload, choice: Choice, environment: Environment, occupancy: Occupancy, prices: Prices
) -> ModelPlan | Finding:
    model, serving, pool = workload.model, choice.serving, choice.placement.pool
    surge_limit = occupancy.surge_limits[choice.kind]
    rollout = plan_rollout(
        wanted=model.rollout.strategy,
        replicas=model.replicas.min,
        limit=pool.limit,
        surge_limit=surge_limit,
    )
    if rollout is None:
        return Finding(
            "ROLL001",
            f"surge needs a limit of {surge_limit} {serving.accelerator.name} in pool {choice.placement.pool_name}, in "
            f"whole nodes, got {pool.limit}",
            f"use rollout auto or in-place, or raise the pool's limit to {surge_limit}",
            subject=model.name,
            field=("rollout",),
        )
    gated = HF_TOKEN if serving.arch.gated and model.model.scheme == "hf" else None
    token = model.model.auth or (HF_TOKEN if HF_TOKEN in environment.secrets else gated)
    if gated and not model.model.auth and token not in environment.secrets:
        return Finding(
            "HF001",
            f"{model.model.repository} is gated and environment {environment.name} maps no '{token}' secret",
            f"accept the licence at Hugging Face and add '{token}' under the environment's secrets",
            subject=model.name,
            field=("model",),
        )
    return ModelPlan(
        model=model,
        serving=serving,
        placement=choice.placement,
        pod=choice.pod,
        rollout=rollout,
        startup=plan_startup(serving, environment.cache),
        cost=choice_cost(choice, model, environment, prices),
        parsers=parsers_for(serving.arch.model_id, serving.arch.model_type, serving.release.engine),
        role=workload.role,
        token_secret=token if model.model.scheme == "hf" else None,
    )
