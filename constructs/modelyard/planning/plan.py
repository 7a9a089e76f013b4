"""The plan of an environment: every model's settings, place, rollout, start-up and cost, and every problem found."""

from __future__ import annotations

from collections.abc import Iterable

from modelyard.engines import parsers_for
from modelyard.findings import Finding
from modelyard.planning.choice import Choice, choice_cost, choose
from modelyard.planning.environment_checks import environment_findings
from modelyard.planning.judgement import judge, located
from modelyard.planning.model_checks import (
    advice,
    flag_findings,
    likely_release,
    parser_findings,
    reference_findings,
)
from modelyard.planning.pool_checks import limit_findings, quota_finding
from modelyard.planning.quota import quota_needs
from modelyard.planning.records import ModelPlan, Plan
from modelyard.planning.rollout import plan_rollout
from modelyard.planning.startup import plan_startup
from modelyard.spec.environment import Environment, Override
from modelyard.spec.loading import Catalogue
from modelyard.spec.model import Model
from modelyard.spec.yaml_source import Source

HF_TOKEN = "hf-token"
"""Logical name of the secret that holds the Hugging Face token."""


def plan(
    catalogue: Catalogue,
    environment: Environment,
    findings: Iterable[Finding] = (),
    source: Source | None = None,
) -> Plan:
    """Plan every model of `catalogue`.

    `findings` of the loading are judged with the plan's own; `source` is the environment's file, for positions.
    """
    problems = [*findings, *environment_findings(environment, catalogue)]
    choices: dict[str, Choice] = {}
    models = {
        name: _overridden(model, environment.overrides.get(name)) for name, model in catalogue.models.items()
    }
    for name, model in sorted(models.items()):
        problems += reference_findings(model, environment)
        chosen = choose(model, environment)
        if isinstance(chosen, Choice):
            choices[name] = chosen
            problems += [
                *flag_findings(model, chosen.serving.release),
                *parser_findings(model, chosen.serving),
            ]
        else:
            problems += [*chosen, *flag_findings(model, likely_release(model))]
    demand = {pool: _demand(pool, models, choices) for pool in environment.pools}
    # What the limits leave when every model runs all its replicas; negative when they are too low.
    headroom = {name: pool.limit - sum(demand[name].values()) for name, pool in environment.pools.items()}
    plans = []
    for name, choice in choices.items():
        planned = _complete(models[name], choice, environment, headroom[choice.placement.pool_name])
        if isinstance(planned, ModelPlan):
            plans.append(planned)
            problems += advice(planned, environment, [c for n, c in choices.items() if n != name])
        else:
            problems.append(planned)
    problems += limit_findings(demand, environment)
    quotas = quota_needs(
        ((p.placement, p.cost.nodes_ceiling + p.rollout.max_surge) for p in plans), environment.quotas
    )
    problems += [quota_finding(need, environment) for need in quotas if need.short]
    placed = [located(finding, catalogue, source) for finding in problems]
    open_findings, acknowledged = judge(placed, environment)
    return Plan(environment, tuple(plans), quotas, open_findings, acknowledged)


def _overridden(model: Model, override: Override | None) -> Model:
    if override is None:
        return model
    changes = {
        name: value for name in Override.model_fields if (value := getattr(override, name)) is not None
    }
    return model.model_copy(update=changes)


def _demand(pool: str, models: dict[str, Model], choices: dict[str, Choice]) -> dict[str, int]:
    """Accelerators of the pool that each model can ask for with all its replicas."""
    return {
        name: models[name].replicas.max * choice.serving.count
        for name, choice in choices.items()
        if choice.placement.pool_name == pool
    }


def _complete(model: Model, choice: Choice, environment: Environment, headroom: int) -> ModelPlan | Finding:
    serving = choice.serving
    rollout = plan_rollout(
        wanted=model.rollout.strategy,
        replicas=max(1, model.replicas.min),
        accelerators=serving.count,
        headroom=headroom,
    )
    if rollout is None:
        return Finding(
            "ROLL001",
            f"surge needs {serving.count} spare {serving.accelerator.name} in pool {choice.placement.pool_name}, "
            f"{max(0, headroom)} left of {choice.placement.pool.limit}",
            "use rollout auto or in-place, or raise the pool's limit",
            subject=model.name,
            field=("rollout",),
        )
    gated = HF_TOKEN if serving.arch.gated and model.model.scheme == "hf" else None
    token = model.model.auth or (HF_TOKEN if HF_TOKEN in environment.secrets else gated)
    if gated and token not in environment.secrets:
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
        startup=plan_startup(serving, model.startup.budget),
        cost=choice_cost(choice, model, environment),
        parsers=parsers_for(serving.arch.model_id, serving.arch.model_type),
        token_secret=token if model.model.scheme == "hf" else None,
    )
